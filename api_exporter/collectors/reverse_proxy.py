"""The reverse proxy: services, domains, clusters and tokens."""

from collections import Counter
from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, cut, labels, states, timestamps
from api_exporter.netbird.facts.proxies import authenticated, restricted
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    ProxyCluster,
    ProxyDomain,
    ProxyService,
    ProxyToken,
)

READS = ("proxy_services", "proxy_domains", "proxy_clusters", "proxy_tokens")

STATUSES = (
    "pending",
    "active",
    "tunnel_not_created",
    "certificate_pending",
    "certificate_failed",
    "error",
)
"""The statuses that the upstream is known to send."""

SERVICES = Metric(
    name="netbird_api_proxy_services",
    help="Number of proxy services by status.",
    source="reverse-proxies/services[].meta.status",
    alert="above 0 for certificate_failed or error",
)
SERVICE_INFO = Metric(
    name="netbird_api_proxy_service_info",
    help="Properties of a proxy service, to be joined by proxy_service_id. Always 1.",
    source="reverse-proxies/services[]",
)
SERVICE_STATUS = Metric(
    name="netbird_api_proxy_service_status",
    help="The status that the proxy service is in: 1 for that one, 0 for the others.",
    source="reverse-proxies/services[].meta.status",
    alert="1 for certificate_failed, tunnel_not_created or error",
)
SERVICE_ENABLED = Metric(
    name="netbird_api_proxy_service_enabled",
    help="Whether the proxy service is enabled.",
    source="reverse-proxies/services[].enabled",
)
SERVICE_AUTHENTICATED = Metric(
    name="netbird_api_proxy_service_authenticated",
    help="Whether the HTTP service is private or asks who you are, in whatever way.",
    source="reverse-proxies/services[].auth.*.enabled,"
    " reverse-proxies/services[].private, where mode is http",
    alert="0 for an enabled service that is not restricted: an open door",
)
SERVICE_RESTRICTED = Metric(
    name="netbird_api_proxy_service_restricted",
    help="Whether the service lets in only some addresses or countries, by a list of"
    " those that are allowed.",
    source="reverse-proxies/services[].access_restrictions.{allowed_cidrs,"
    "allowed_countries}",
    alert="0 for an enabled service without authentication: an open door",
)
CERTIFICATE_ISSUED = Metric(
    name="netbird_api_proxy_service_certificate_issued_timestamp_seconds",
    help="When the proxy service's certificate was issued; absent before.",
    source="reverse-proxies/services[].meta.certificate_issued_at",
)
DOMAIN_VALIDATED = Metric(
    name="netbird_api_proxy_domain_validated",
    help="Whether a custom domain has been validated.",
    source="reverse-proxies/domains[].validated, of custom domains",
    alert="0 for longer than DNS takes",
)
CLUSTER_ONLINE = Metric(
    name="netbird_api_proxy_cluster_online",
    help="Whether the proxy cluster is online.",
    source="reverse-proxies/clusters[].online",
    alert="0",
)
CLUSTER_PROXIES = Metric(
    name="netbird_api_proxy_cluster_connected_proxies",
    help="Number of proxies of the cluster that are connected.",
    source="reverse-proxies/clusters[].connected_proxies",
    alert="fewer than there should be",
)
TOKEN_EXPIRATION = Metric(
    name="netbird_api_proxy_token_expiration_timestamp_seconds",
    help="When a proxy's token ends; absent when never, or when it is revoked.",
    source="reverse-proxies/proxy-tokens[].expires_at, of those not revoked",
    alert="days ahead: the proxy stops then",
)
TOKEN_LAST_USED = Metric(
    name="netbird_api_proxy_token_last_used_timestamp_seconds",
    help="When a proxy's token was last used; absent when never.",
    source="reverse-proxies/proxy-tokens[].last_used",
    alert="use of a token that nobody should have",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the four resources, each as soon as it is known."""
    if inventory.proxy_services is not None:
        yield from _services(inventory.proxy_services)
    if inventory.proxy_domains is not None:
        yield _domains(inventory.proxy_domains)
    if inventory.proxy_clusters is not None:
        yield from _clusters(inventory.proxy_clusters)
    if inventory.proxy_tokens is not None:
        yield from _tokens(inventory.proxy_tokens)


def _services(services: tuple[ProxyService, ...]) -> Iterator[Family]:
    counts = Counter(cut(service.meta.status) for service in services)
    yield Family(
        SERVICES,
        [
            (labels(status=status), counts[status])
            for status in dict.fromkeys((*STATUSES, *sorted(counts)))
        ],
    )
    yield Family(
        SERVICE_INFO,
        (
            (
                labels(
                    proxy_service_id=service.id,
                    proxy_service=service.name,
                    mode=service.mode,
                    domain=service.domain,
                ),
                1,
            )
            for service in services
        ),
    )
    keyed = [(labels(proxy_service_id=s.id, proxy_service=s.name), s) for s in services]
    yield states(
        SERVICE_STATUS, "status", STATUSES, ((key, s.meta.status) for key, s in keyed)
    )
    yield Family(SERVICE_ENABLED, ((key, int(s.enabled)) for key, s in keyed))
    yield Family(
        SERVICE_AUTHENTICATED,
        ((key, int(authenticated(s))) for key, s in keyed if s.mode == "http"),
    )
    yield Family(SERVICE_RESTRICTED, ((key, int(restricted(s))) for key, s in keyed))
    yield timestamps(
        CERTIFICATE_ISSUED, ((key, s.meta.certificate_issued_at) for key, s in keyed)
    )


def _domains(domains: tuple[ProxyDomain, ...]) -> Family:
    return Family(
        DOMAIN_VALIDATED,
        (
            (labels(proxy_domain_id=d.id, domain=d.domain), int(d.validated))
            for d in domains
            if d.type == "custom"
        ),
    )


def _clusters(clusters: tuple[ProxyCluster, ...]) -> Iterator[Family]:
    keyed = [(labels(proxy_cluster=c.address), c) for c in clusters]
    yield Family(CLUSTER_ONLINE, ((key, int(c.online)) for key, c in keyed))
    yield Family(CLUSTER_PROXIES, ((key, c.connected_proxies) for key, c in keyed))


def _tokens(tokens: tuple[ProxyToken, ...]) -> Iterator[Family]:
    keyed = [(labels(proxy_token_id=t.id, proxy_token=t.name), t) for t in tokens]
    yield timestamps(
        TOKEN_EXPIRATION, ((key, t.expires_at) for key, t in keyed if not t.revoked)
    )
    yield timestamps(TOKEN_LAST_USED, ((key, t.last_used) for key, t in keyed))

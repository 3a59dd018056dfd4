"""The reverse proxy: services, domains, clusters and tokens."""

from collections import Counter
from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, labels, timestamps
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


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the four resources, each as soon as it is known."""
    if inventory.proxy_services is not None:
        yield from _services(inventory.proxy_services)
    if inventory.proxy_domains is not None:
        yield _domains(inventory.proxy_domains)
    if inventory.proxy_clusters is not None:
        yield from _clusters(inventory.proxy_clusters)
    if inventory.proxy_tokens is not None:
        yield _tokens(inventory.proxy_tokens)


def _services(services: tuple[ProxyService, ...]) -> Iterator[Family]:
    counts = Counter(service.meta.status for service in services)
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
    yield Family(
        SERVICE_STATUS,
        (
            (
                labels(
                    proxy_service_id=service.id,
                    proxy_service=service.name,
                    status=status,
                ),
                int(status == service.meta.status),
            )
            for service in services
            for status in dict.fromkeys((*STATUSES, service.meta.status or STATUSES[0]))
        ),
    )
    keyed = [(labels(proxy_service_id=s.id, proxy_service=s.name), s) for s in services]
    yield Family(SERVICE_ENABLED, ((key, int(s.enabled)) for key, s in keyed))
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
    keyed = [
        (labels(proxy_cluster_id=c.id, proxy_cluster=c.address), c) for c in clusters
    ]
    yield Family(CLUSTER_ONLINE, ((key, int(c.online)) for key, c in keyed))
    yield Family(CLUSTER_PROXIES, ((key, c.connected_proxies) for key, c in keyed))


def _tokens(tokens: tuple[ProxyToken, ...]) -> Family:
    return timestamps(
        TOKEN_EXPIRATION,
        (
            (labels(proxy_token_id=t.id, proxy_token=t.name), t.expires_at)
            for t in tokens
            if not t.revoked
        ),
    )

"""The reverse proxy: services, domains, clusters and tokens."""

from collections import Counter
from collections.abc import Iterable

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import Family, Metric, labels, timestamp, truncate
from api_exporter.netbird.facts.proxies import (
    is_restricted,
    open_paths,
    requires_authentication,
)
from api_exporter.netbird.records import (
    ProxyCluster,
    ProxyDomain,
    ProxyService,
    ProxyToken,
)

STATUSES = (
    "pending",
    "active",
    "tunnel_not_created",
    "certificate_pending",
    "certificate_failed",
    "error",
)
"""The statuses that NetBird is known to send."""

SERVICES = ObjectKind[ProxyService](
    "proxy_services",
    "reverse-proxies/services[]",
    lambda service: labels(proxy_service_id=service.id, proxy_service=service.name),
)
DOMAINS = ObjectKind[ProxyDomain](
    "proxy_domains",
    "reverse-proxies/domains[]",
    lambda domain: labels(proxy_domain_id=domain.id, domain=domain.domain),
)
CLUSTERS = ObjectKind[ProxyCluster](
    "proxy_clusters",
    "reverse-proxies/clusters[]",
    lambda cluster: labels(proxy_cluster=cluster.address),
)
PROXY_TOKENS = ObjectKind[ProxyToken](
    "proxy_tokens",
    "reverse-proxies/proxy-tokens[]",
    lambda token: labels(proxy_token_id=token.id, proxy_token=token.name),
)


def _by_status(metric: Metric, services: Iterable[ProxyService]) -> Family:
    counts = Counter(truncate(service.meta.status) for service in services)
    every = dict.fromkeys((*STATUSES, *sorted(counts)))
    return Family(metric, ((labels(status=status), counts[status]) for status in every))


ROWS = (
    SERVICES.family(
        "netbird_api_proxy_services",
        "Number of proxy services by status",
        "reverse-proxies/services[].meta.status",
        _by_status,
        alert="above 0 for certificate_failed or error",
    ),
    SERVICES.each(
        "netbird_api_proxy_service_info",
        "Properties of a proxy service, to join on proxy_service_id (always 1)",
        "reverse-proxies/services[]",
        labels=lambda service: labels(
            proxy_service_id=service.id,
            proxy_service=service.name,
            mode=service.mode,
            domain=service.domain,
        ),
    ),
    SERVICES.states(
        "netbird_api_proxy_service_status",
        "Whether the proxy service has this status (1 = yes, 0 = no)",
        "meta.status",
        "status",
        STATUSES,
        alert="1 for certificate_failed, tunnel_not_created or error",
    ),
    SERVICES.field(
        "netbird_api_proxy_service_enabled",
        "Whether the proxy service is enabled (1 = yes, 0 = no)",
        "enabled",
    ),
    SERVICES.each(
        "netbird_api_proxy_service_authenticated",
        "Whether the HTTP service, on all paths, is private or requires authentication"
        " (1 = yes, 0 = no)",
        "reverse-proxies/services[].auth.*.enabled,"
        " reverse-proxies/services[].{private,targets}, where mode is http",
        lambda service: (
            int(requires_authentication(service)) if service.mode == "http" else None
        ),
        alert="0 for an enabled service that is not restricted: open to the internet",
    ),
    SERVICES.each(
        "netbird_api_proxy_service_open_paths",
        "Number of paths of the HTTP service that bypass its authentication",
        "reverse-proxies/services[].targets[].{enabled,access_action}, where mode is"
        " http",
        lambda service: len(open_paths(service)) if service.mode == "http" else None,
        alert="above 0: these paths are open to the internet",
    ),
    SERVICES.each(
        "netbird_api_proxy_service_restricted",
        "Whether the proxy service allows only listed addresses or countries (1 = yes,"
        " 0 = no)",
        "reverse-proxies/services[].access_restrictions.{allowed_cidrs,"
        "allowed_countries}",
        lambda service: int(is_restricted(service)),
        alert="0 for an enabled service without authentication: open to the internet",
    ),
    SERVICES.field(
        "netbird_api_proxy_service_certificate_issued_timestamp_seconds",
        "Time when the proxy service's certificate was issued, in seconds since 1970"
        " (absent before)",
        "meta.certificate_issued_at",
        timestamp,
    ),
    DOMAINS.each(
        "netbird_api_proxy_domain_validated",
        "Whether a custom domain has been validated (1 = yes, 0 = no)",
        "reverse-proxies/domains[].validated, of custom domains",
        lambda domain: int(domain.validated) if domain.type == "custom" else None,
        alert="0 for longer than DNS takes",
    ),
    CLUSTERS.field(
        "netbird_api_proxy_cluster_online",
        "Whether the proxy cluster is online (1 = yes, 0 = no)",
        "online",
        alert="0",
    ),
    CLUSTERS.field(
        "netbird_api_proxy_cluster_connected_proxies",
        "Number of proxies of the cluster that are connected",
        "connected_proxies",
        alert="fewer than expected",
    ),
    PROXY_TOKENS.each(
        "netbird_api_proxy_token_expiration_timestamp_seconds",
        "Time when a proxy's token expires, in seconds since 1970 (absent if never or"
        " revoked)",
        "reverse-proxies/proxy-tokens[].expires_at, of those not revoked",
        lambda token: None if token.revoked else timestamp(token.expires_at),
        alert="some days before: the proxy stops at that time",
    ),
    PROXY_TOKENS.field(
        "netbird_api_proxy_token_last_used_timestamp_seconds",
        "Time when a proxy's token was last used, in seconds since 1970 (absent if"
        " never)",
        "last_used",
        timestamp,
        alert="use of a token that should be unused",
    ),
)

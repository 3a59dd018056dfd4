"""The reverse proxy: services, domains, clusters and tokens."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.attention.thresholds import DAY, SOON, Lifetime
from api_exporter.collectors.rows import ObjectKind, id_and_name
from api_exporter.exposition.text import Sample, labels, timestamp, truncate
from api_exporter.formatting import safe_line
from api_exporter.netbird.bodies import ListDecoder, PageDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Count, Instant, ShownInstant, ShownText
from api_exporter.netbird.resources import ACCESS_LOG, Resource
from api_exporter.subjects import Subject


class ProxyServiceMeta(Struct, frozen=True, gc=False, kw_only=True):
    """The state of a proxy service."""

    status: str = ""
    certificate_issued_at: ShownInstant = None


class ProxyAuth(Struct, frozen=True, gc=False, kw_only=True):
    """An authentication method of a proxy service. Its secrets are not read."""

    enabled: bool = False


class AccessRestrictions(Struct, frozen=True, gc=False, kw_only=True):
    """The allow-lists of a proxy service. Lists that only block are not read."""

    allowed_cidrs: tuple[str, ...] | None = None
    allowed_countries: tuple[str, ...] | None = None


_AuthMethod = ProxyAuth | str | float | bool | None
"""A value below `auth`. Only objects are used; no other value rejects the service."""


class ProxyTarget(Struct, frozen=True, gc=False, kw_only=True):
    """A path of a proxy service, and the machine behind it.

    Attributes:
        access_action: `bypass` for a path without authentication, `block` for one that
            is closed; `inherit`, or "" before NetBird 0.78, as the service says.
    """

    path: ShownText = ""
    enabled: bool = False
    access_action: str = ""


class ProxyService(Struct, frozen=True, gc=False, kw_only=True):
    """A service behind the reverse proxy (`/api/reverse-proxies/services`)."""

    id: str
    name: ShownText = ""
    mode: str = ""
    domain: ShownText = ""
    enabled: bool = False
    private: bool = False
    auth: dict[str, _AuthMethod | tuple[_AuthMethod, ...]] | None = None
    targets: tuple[ProxyTarget, ...] | None = None
    access_restrictions: AccessRestrictions = AccessRestrictions()
    meta: ProxyServiceMeta = ProxyServiceMeta()

    @property
    def is_http(self) -> bool:
        """True also without a mode: the first servers with services send none."""
        return self.mode in {"", "http"}


class ProxyDomain(Struct, frozen=True, gc=False, kw_only=True):
    """A domain of the reverse proxy. A free domain has an empty id."""

    id: str
    domain: ShownText = ""
    type: str = ""
    validated: bool = False


class ProxyCluster(Struct, frozen=True, gc=False, kw_only=True):
    """Proxies that replace each other (`/api/reverse-proxies/clusters`).

    The address identifies a cluster. Its `id` is that of one of the proxies, which have
    another id after each start.

    Attributes:
        online: None of older servers, which list clusters with connected proxies only.
    """

    address: str = ""
    online: bool | None = None
    connected_proxies: Count = 0

    @property
    def is_online(self) -> bool:
        """For findings; the metric is 0 where the field is missing, as all metrics."""
        return self.connected_proxies > 0 if self.online is None else self.online


class ProxyToken(Struct, frozen=True, gc=False, kw_only=True):
    """A token of a self-hosted proxy (`/api/reverse-proxies/proxy-tokens`)."""

    id: str
    name: ShownText = ""
    revoked: bool = False
    created_at: ShownInstant = None
    expires_at: Instant = None
    last_used: Instant = None


PROXY_SERVICES = Resource(
    "proxy_services",
    "api/reverse-proxies/services",
    ListDecoder(ProxyService),
    permission="services",
)
PROXY_DOMAINS = Resource(
    "proxy_domains",
    "api/reverse-proxies/domains",
    ListDecoder(ProxyDomain),
    permission="services",
)
PROXY_CLUSTERS = Resource(
    "proxy_clusters",
    "api/reverse-proxies/clusters",
    ListDecoder(ProxyCluster, key="address"),
    permission="services",
)
PROXY_TOKENS = Resource(
    "proxy_tokens",
    "api/reverse-proxies/proxy-tokens",
    ListDecoder(ProxyToken),
    permission="services",
)
# No collector reads it: one page, which `logs.access_log` chooses.
PROXY_LOG = Resource(
    ACCESS_LOG,
    "api/events/proxy",
    PageDecoder(),
    30,
    depends_on=("proxy_services", "proxy_clusters"),
    permission="services",
    place=8,
)


def open_paths(service: ProxyService) -> list[str]:
    """Return the paths of enabled targets that bypass the service's authentication.

    Fact: NetBird 0.78 has them, for HTTP services only.
    """
    if not service.is_http:
        return []
    targets = service.targets or ()
    return [t.path or "/" for t in targets if t.enabled and t.access_action == "bypass"]


def requires_authentication(service: ProxyService) -> bool:
    """Return whether all paths require authentication or admit only peers."""
    if open_paths(service):
        return False
    methods = (
        method
        for values in (service.auth or {}).values()
        for method in (values if isinstance(values, tuple) else (values,))
    )
    return service.private or any(
        isinstance(method, ProxyAuth) and method.enabled for method in methods
    )


def is_restricted(service: ProxyService) -> bool:
    """Return whether an allow-list restricts the service. Block-lists do not count."""
    lists = service.access_restrictions
    cidrs = lists.allowed_cidrs or ()
    return bool(lists.allowed_countries) or (len(cidrs) > 0 and not open_range(service))


def open_range(service: ProxyService) -> str:
    """Return the allowed range that contains all addresses; "" if there is none."""
    cidrs = service.access_restrictions.allowed_cidrs or ()
    return next((cidr for cidr in cidrs if cidr in {"0.0.0.0/0", "::/0"}), "")


def service_names(inventory: Inventory) -> Mapping[str, str] | None:
    services = PROXY_SERVICES.of(inventory)
    return None if services is None else {s.id: s.name for s in services}


STATUSES = (
    "pending",
    "active",
    "tunnel_not_created",
    "certificate_pending",
    "certificate_failed",
    "error",
)
"""The statuses that NetBird is known to send."""

SERVICE = ObjectKind[ProxyService](PROXY_SERVICES, id_and_name("proxy_service"))

DOMAIN = ObjectKind[ProxyDomain](
    PROXY_DOMAINS,
    lambda domain: labels(proxy_domain_id=domain.id, domain=domain.domain),
)

CLUSTER = ObjectKind[ProxyCluster](
    PROXY_CLUSTERS, lambda cluster: labels(proxy_cluster=cluster.address)
)

PROXY_TOKEN = ObjectKind[ProxyToken](PROXY_TOKENS, id_and_name("proxy_token"))


def _by_status(services: Iterable[ProxyService]) -> Iterator[Sample]:
    counts = Counter(truncate(service.meta.status) for service in services)
    for status in dict.fromkeys((*STATUSES, *sorted(counts))):
        yield labels(status=status), counts[status]


FAMILIES = (
    SERVICE.samples(
        "netbird_api_proxy_services",
        "Number of proxy services by status",
        "reverse-proxies/services[].meta.status",
        _by_status,
        alert="above 0 for certificate_failed or error",
    ),
    SERVICE.info(
        "netbird_api_proxy_service_info",
        "Properties of a proxy service, to join on proxy_service_id (always 1)",
        {"mode": "mode", "domain": "domain"},
    ),
    SERVICE.states(
        "netbird_api_proxy_service_status",
        "Whether the proxy service has this status (1 = yes, 0 = no)",
        "meta.status",
        "status",
        STATUSES,
        alert="1 for certificate_failed, tunnel_not_created or error",
    ),
    SERVICE.enabled("netbird_api_proxy_service_enabled", "proxy service"),
    SERVICE.each(
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
    SERVICE.each(
        "netbird_api_proxy_service_open_paths",
        "Number of paths of the HTTP service that bypass its authentication",
        "reverse-proxies/services[].targets[].{enabled,access_action}, where mode is"
        " http",
        lambda service: len(open_paths(service)) if service.mode == "http" else None,
        alert="above 0 for an enabled service that is not restricted: open to the"
        " internet",
    ),
    SERVICE.each(
        "netbird_api_proxy_service_restricted",
        "Whether the proxy service allows only listed addresses or countries (1 = yes,"
        " 0 = no)",
        "reverse-proxies/services[].access_restrictions.{allowed_cidrs,"
        "allowed_countries}",
        lambda service: int(is_restricted(service)),
        alert="0 for an enabled service without authentication: open to the internet",
    ),
    SERVICE.field(
        "netbird_api_proxy_service_certificate_issued_timestamp_seconds",
        "Time when the proxy service's certificate was issued, in seconds since 1970"
        " (absent before)",
        "meta.certificate_issued_at",
        timestamp,
    ),
    DOMAIN.each(
        "netbird_api_proxy_domain_validated",
        "Whether a custom domain has been validated (1 = yes, 0 = no)",
        "reverse-proxies/domains[].validated, of custom domains",
        lambda domain: int(domain.validated) if domain.type == "custom" else None,
        alert="0 for longer than DNS takes",
    ),
    CLUSTER.each(
        "netbird_api_proxy_cluster_online",
        "Whether the proxy cluster is online (1 = yes, 0 = no)",
        "reverse-proxies/clusters[].online",
        lambda cluster: int(cluster.online or False),
        alert="0",
    ),
    CLUSTER.field(
        "netbird_api_proxy_cluster_connected_proxies",
        "Number of proxies of the cluster that are connected",
        "connected_proxies",
        alert="fewer than expected",
    ),
    PROXY_TOKEN.each(
        "netbird_api_proxy_token_expiration_timestamp_seconds",
        "Time when a proxy's token expires, in seconds since 1970 (absent if never or"
        " revoked)",
        "reverse-proxies/proxy-tokens[].expires_at, of those not revoked",
        lambda token: None if token.revoked else timestamp(token.expires_at),
        alert="some days before: the proxy cannot connect after that",
    ),
    PROXY_TOKEN.field(
        "netbird_api_proxy_token_last_used_timestamp_seconds",
        "Time when a proxy's token was last used, in seconds since 1970 (absent if"
        " never)",
        "last_used",
        timestamp,
        alert="use of a token that should be unused",
    ),
)


PROXY_TOKEN_SOON = FindingKind(
    "NetBirdProxyTokenExpiresSoon",
    "Proxy token",
    "proxy_token",
    lasts="1h",
    summary="Proxy token {{ $labels.proxy_token }} expires soon",
    description="Proxy token {{ $labels.proxy_token }} is in use and expires soon, or"
    " has expired.",
)
CERTIFICATE_FAILED = FindingKind(
    "NetBirdProxyCertificateFailed",
    "Proxy service",
    "proxy_service",
    lasts="15m",
    summary="Proxy service {{ $labels.proxy_service }} has no certificate",
    description="NetBird could not get a certificate for proxy service {{"
    " $labels.proxy_service }}.",
)
TUNNEL_FAILED = FindingKind(
    "NetBirdProxyTunnelFailed",
    "Proxy service",
    "proxy_service",
    lasts="15m",
    summary="Proxy service {{ $labels.proxy_service }} cannot be reached",
    description="Proxy service {{ $labels.proxy_service }} has no tunnel to its"
    " target, or the status error.",
)
SERVICE_OPEN = FindingKind(
    "NetBirdProxyServiceOpen",
    "Proxy service",
    "proxy_service",
    lasts="15m",
    summary="Proxy service {{ $labels.proxy_service }} is open to the internet",
    description="Proxy service {{ $labels.proxy_service }} requires no authentication,"
    " on all paths or on one, and no access list restricts its clients. A list that"
    " allows 0.0.0.0/0 or ::/0 restricts none.",
)
CLUSTER_OFFLINE = FindingKind(
    "NetBirdProxyClusterOffline",
    "Proxy cluster",
    "proxy_cluster",
    lasts="10m",
    summary="Proxy cluster {{ $labels.proxy_cluster }} has no connected proxy",
    description="The services of proxy cluster {{ $labels.proxy_cluster }} cannot be"
    " reached.",
    own_labels=(("proxy_cluster", "object", "(.+)"),),
)


def proxy_tokens(snapshot: Snapshot) -> Iterator[Finding]:
    days = snapshot.thresholds.days
    for token in PROXY_TOKENS.of(snapshot.inventory) or ():
        end, used = timestamp(token.expires_at), timestamp(token.last_used)
        if end is None or used is None or token.revoked:
            continue
        life = Lifetime(timestamp(token.created_at), end)
        if (
            life.is_near_end(snapshot.now, days["proxy_token_soon"] * DAY, SOON)
            and snapshot.now - used < days["in_use"] * DAY
        ):
            yield snapshot.finding(
                PROXY_TOKEN_SOON,
                "expires soon: the proxy that uses this token cannot connect then."
                if end > snapshot.now
                else "has expired: the proxy that uses this token cannot connect.",
                token,
                until=end,
            )


_FAILED = {
    "certificate_failed": (
        CERTIFICATE_FAILED,
        "has no certificate: NetBird could not get one.",
    ),
    "tunnel_not_created": (
        TUNNEL_FAILED,
        "cannot be reached: there is no tunnel to its target.",
    ),
    "error": (TUNNEL_FAILED, "cannot be reached: its status is error."),
}

_SHOWN_PATHS = 10


def services(snapshot: Snapshot) -> Iterator[Finding]:
    for service in PROXY_SERVICES.of(snapshot.inventory) or ():
        if not service.enabled:
            continue
        name = service.name or service.domain or service.id
        if service.meta.status in _FAILED:
            kind, message = _FAILED[service.meta.status]
            yield snapshot.finding(kind, message, object_id=service.id, name=name)
        if service.is_http and not (
            requires_authentication(service) or is_restricted(service)
        ):
            everyone = open_range(service)
            access = f", and its access list allows {everyone}" if everyone else ""
            paths = list(map(safe_line, open_paths(service)))
            if len(paths) > _SHOWN_PATHS:
                paths[_SHOWN_PATHS:] = ["…"]
            where = f" on {', '.join(paths)}" if paths else ""
            yield snapshot.finding(
                SERVICE_OPEN,
                f"is open to the internet: it requires no authentication"
                f"{where}{access}.",
                object_id=service.id,
                name=name,
            )


def clusters(snapshot: Snapshot) -> Iterator[Finding]:
    for cluster in PROXY_CLUSTERS.of(snapshot.inventory) or ():
        if not cluster.is_online:
            yield snapshot.finding(
                CLUSTER_OFFLINE,
                "has no connected proxy: its services cannot be reached.",
                object_id=cluster.address,
                name=cluster.address,
            )


FINDERS = (
    Finder(proxy_tokens, (PROXY_TOKEN_SOON,), ("proxy_tokens",)),
    Finder(clusters, (CLUSTER_OFFLINE,), ("proxy_clusters",)),
    Finder(
        services, (CERTIFICATE_FAILED, TUNNEL_FAILED, SERVICE_OPEN), ("proxy_services",)
    ),
)

SUBJECT = Subject(
    __name__,
    (PROXY_SERVICES, PROXY_DOMAINS, PROXY_CLUSTERS, PROXY_TOKENS, PROXY_LOG),
    FAMILIES,
    FINDERS,
)

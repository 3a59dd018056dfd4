"""The reverse proxy."""

from tests.reference.bodies import Known
from tests.reference.fields import Record, flag, instant, number, part, text, texts
from tests.reference.joins import has
from tests.reference.page import Page, Settings

STATUSES = (
    "pending",
    "active",
    "tunnel_not_created",
    "certificate_pending",
    "certificate_failed",
    "error",
)
ANYWHERE = {"0.0.0.0/0", "::/0"}


def reverse_proxy(known: Known, _settings: Settings) -> Page:
    page = Page()
    if has(known, "proxy_services"):
        for status in STATUSES:
            page.add("netbird_api_proxy_services", 0, status=status)
    for service in known.get("proxy_services", []):
        _service(page, service)
    for domain in known.get("proxy_domains", []):
        if text(domain, "type") == "custom":
            page.put(
                "netbird_api_proxy_domain_validated",
                flag(domain, "validated"),
                proxy_domain_id=text(domain, "id"),
                domain=text(domain, "domain"),
            )
    for cluster in known.get("proxy_clusters", []):
        address = text(cluster, "address")
        page.put(
            "netbird_api_proxy_cluster_online",
            flag(cluster, "online"),
            proxy_cluster=address,
        )
        page.put(
            "netbird_api_proxy_cluster_connected_proxies",
            number(cluster, "connected_proxies"),
            proxy_cluster=address,
        )
    for token in known.get("proxy_tokens", []):
        of = {"proxy_token_id": text(token, "id"), "proxy_token": text(token, "name")}
        if not flag(token, "revoked"):
            page.put(
                "netbird_api_proxy_token_expiration_timestamp_seconds",
                instant(token, "expires_at"),
                **of,
            )
        page.put(
            "netbird_api_proxy_token_last_used_timestamp_seconds",
            instant(token, "last_used"),
            **of,
        )
    return page


def _service(page: Page, service: Record) -> None:
    of = {
        "proxy_service_id": text(service, "id"),
        "proxy_service": text(service, "name"),
    }
    meta = part(service, "meta")
    status = text(meta, "status")
    page.add("netbird_api_proxy_services", 1, status=status)
    page.put(
        "netbird_api_proxy_service_info",
        1,
        **of,
        mode=text(service, "mode"),
        domain=text(service, "domain"),
    )
    page.states("netbird_api_proxy_service_status", STATUSES, status, "status", **of)
    page.put("netbird_api_proxy_service_enabled", flag(service, "enabled"), **of)
    if text(service, "mode") == "http":
        page.put(
            "netbird_api_proxy_service_authenticated",
            flag(service, "private") or _is_authenticated(part(service, "auth")),
            **of,
        )
    page.put(
        "netbird_api_proxy_service_restricted",
        _restricted(part(service, "access_restrictions")),
        **of,
    )
    page.put(
        "netbird_api_proxy_service_certificate_issued_timestamp_seconds",
        instant(meta, "certificate_issued_at"),
        **of,
    )


def _is_authenticated(auth: Record) -> bool:
    for value in auth.values():
        for method in value if isinstance(value, list) else [value]:
            if isinstance(method, dict) and method.get("enabled") is True:
                return True
    return False


def _restricted(restrictions: Record) -> bool:
    addresses = set(texts(restrictions, "allowed_cidrs"))
    if addresses and not addresses & ANYWHERE:
        return True
    return bool(texts(restrictions, "allowed_countries"))

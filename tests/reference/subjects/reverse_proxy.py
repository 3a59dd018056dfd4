"""The reverse proxy."""

from tests.reference.fields import (
    Known,
    Record,
    flag,
    number,
    objects,
    own,
    part,
    text,
    texts,
)
from tests.reference.joins import has
from tests.reference.page import Page, Settings
from tests.reference.shapes import WORDS, either, many, mapping, scalar, thing

_WAY = either(thing(yes="enabled"), scalar)


RECORDS = {
    "proxy_services": thing(
        "id mode",
        "enabled private",
        shown="name domain",
        auth=mapping(either(_WAY, many(_WAY))),
        targets=many(thing("access_action", "enabled", shown="path")),
        access_restrictions=thing(allowed_cidrs=WORDS, allowed_countries=WORDS),
        meta=thing("status", shown_times="certificate_issued_at"),
    ),
    "proxy_domains": thing("id type", "validated", shown="domain"),
    "proxy_clusters": thing("address", "online", "connected_proxies"),
    "proxy_tokens": thing(
        "id",
        "revoked",
        times="expires_at last_used",
        shown="name",
        shown_times="created_at",
    ),
}


STATUSES = (
    *("pending", "active", "tunnel_not_created", "certificate_pending"),
    *("certificate_failed", "error"),
)
ANYWHERE = {"0.0.0.0/0", "::/0"}


def reverse_proxy(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "proxy_services"):
        for status in STATUSES:
            page.add("proxy_services", 0, status=status)
    for service in known.get("proxy_services", []):
        _service(page, service)
    for domain in known.get("proxy_domains", []):
        if text(domain, "type") == "custom":
            of = {"proxy_domain_id": text(domain, "id")}
            of["domain"] = text(domain, "domain")
            page.put("proxy_domain_validated", flag(domain, "validated"), **of)
    for cluster in known.get("proxy_clusters", []):
        of = {"proxy_cluster": text(cluster, "address")}
        page.put("proxy_cluster_online", flag(cluster, "online"), **of)
        proxies = number(cluster, "connected_proxies")
        page.put("proxy_cluster_connected_proxies", proxies, **of)
    for token in known.get("proxy_tokens", []):
        of = own("proxy_token", token)
        if not flag(token, "revoked"):
            page.time("proxy_token_expiration", token, "expires_at", **of)
        page.time("proxy_token_last_used", token, "last_used", **of)


def _service(page: Page, service: Record) -> None:
    of = own("proxy_service", service)
    meta = part(service, "meta")
    status = text(meta, "status")
    page.add("proxy_services", 1, status=status)
    mode, domain = text(service, "mode"), text(service, "domain")
    page.put("proxy_service_info", 1, **of, mode=mode, domain=domain)
    page.states("proxy_service_status", STATUSES, status, "status", **of)
    page.put("proxy_service_enabled", flag(service, "enabled"), **of)
    if mode == "http":
        ways = [
            target
            for target in objects(service, "targets")
            if flag(target, "enabled") and text(target, "access_action") == "bypass"
        ]
        page.put("proxy_service_open_paths", len(ways), **of)
        safe = flag(service, "private") or _is_authenticated(part(service, "auth"))
        page.put("proxy_service_authenticated", safe and not ways, **of)
    restricted = _restricted(part(service, "access_restrictions"))
    page.put("proxy_service_restricted", restricted, **of)
    page.time("proxy_service_certificate_issued", meta, "certificate_issued_at", **of)


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

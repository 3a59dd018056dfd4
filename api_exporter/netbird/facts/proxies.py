"""Reverse proxy services: their authentication and access restrictions."""

from api_exporter.netbird.records import ProxyAuth, ProxyService


def open_paths(service: ProxyService) -> list[str]:
    """Return the paths of enabled targets that bypass the service's authentication.

    Fact: NetBird 0.78 has them, for HTTP services only.
    """
    if service.mode != "http":
        return []
    targets = service.targets or ()
    return [t.path or "/" for t in targets if t.enabled and t.access_action == "bypass"]


def requires_authentication(service: ProxyService) -> bool:
    """Return whether the service requires authentication or admits only peers.

    It must do so on all paths.
    """
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

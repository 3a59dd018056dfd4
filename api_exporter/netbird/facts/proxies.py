"""Reverse proxy services: their authentication and access restrictions."""

from api_exporter.netbird.records import ProxyAuth, ProxyService


def authenticated(service: ProxyService) -> bool:
    """Return whether the service requires authentication or admits only peers."""
    ways = (
        way
        for under in (service.auth or {}).values()
        for way in (under if isinstance(under, tuple) else (under,))
    )
    return service.private or any(
        isinstance(way, ProxyAuth) and way.enabled for way in ways
    )


_EVERYBODY = ("0.0.0.0/0", "::/0")


def restricted(service: ProxyService) -> bool:
    """Return whether an allow-list restricts the service. Block-lists do not count."""
    lists = service.access_restrictions
    cidrs = lists.allowed_cidrs or ()
    return bool(lists.allowed_countries) or (
        len(cidrs) > 0 and not unrestricting(service)
    )


def unrestricting(service: ProxyService) -> str:
    """Return the allowed range that contains all addresses; "" if there is none."""
    cidrs = service.access_restrictions.allowed_cidrs or ()
    return next((cidr for cidr in cidrs if cidr in _EVERYBODY), "")

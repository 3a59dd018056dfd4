"""Reverse proxy services: whether they authenticate, and whom they let in."""

from api_exporter.netbird.records import ProxyAuth, ProxyService


def authenticated(service: ProxyService) -> bool:
    """Whether the proxy asks who is there, or lets only peers in."""
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
    """Whether a list says who may come in; one that only blocks says no such thing."""
    lists = service.access_restrictions
    cidrs = lists.allowed_cidrs or ()
    return bool(lists.allowed_countries) or (
        len(cidrs) > 0 and not unrestricting(service)
    )


def unrestricting(service: ProxyService) -> str:
    """The allowed range that contains all addresses, "" where there is none."""
    cidrs = service.access_restrictions.allowed_cidrs or ()
    return next((cidr for cidr in cidrs if cidr in _EVERYBODY), "")

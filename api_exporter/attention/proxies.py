"""Services of the reverse proxy that fail or stand open, clusters that are offline."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finding, Snapshot, plain
from api_exporter.netbird.facts.proxies import authenticated, restricted

_FAILED = {
    "certificate_failed": (
        "NetBirdProxyCertificateFailed",
        "It could not get its certificate.",
    ),
    "tunnel_not_created": (
        "NetBirdProxyTunnelFailed",
        "It cannot be reached: there is no tunnel to it.",
    ),
    "error": ("NetBirdProxyTunnelFailed", "It cannot be reached: it is in error."),
}


def services(snapshot: Snapshot) -> Iterator[Finding]:
    """Of those that are enabled."""
    for service in snapshot.inventory.proxy_services or ():
        if not service.enabled:
            continue
        named = f"Proxy service {plain(service.name or service.domain or service.id)}"
        if service.meta.status in _FAILED:
            alert, message = _FAILED[service.meta.status]
            yield snapshot.finding(alert, named, message)
        if service.mode == "http" and not (
            authenticated(service) or restricted(service)
        ):
            yield snapshot.finding(
                "NetBirdProxyServiceOpen",
                named,
                "It is open to everybody on the internet: nothing asks who is there.",
            )


def clusters(snapshot: Snapshot) -> Iterator[Finding]:
    """Those without a proxy that is connected."""
    for cluster in snapshot.inventory.proxy_clusters or ():
        if not cluster.online:
            yield snapshot.finding(
                "NetBirdProxyClusterOffline",
                f"Proxy cluster {plain(cluster.address)}",
                "No proxy of it is connected: its services cannot be reached.",
            )

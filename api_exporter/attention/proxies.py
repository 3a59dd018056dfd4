"""Findings about the reverse proxy: its services and clusters."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finder, Finding, Snapshot, safe_line
from api_exporter.netbird.facts.proxies import (
    is_restricted,
    open_paths,
    open_range,
    requires_authentication,
)

_FAILED = {
    "certificate_failed": (
        "NetBirdProxyCertificateFailed",
        "has no certificate: NetBird could not get one.",
    ),
    "tunnel_not_created": (
        "NetBirdProxyTunnelFailed",
        "cannot be reached: there is no tunnel to its target.",
    ),
    "error": ("NetBirdProxyTunnelFailed", "cannot be reached: its status is error."),
}


_SHOWN_PATHS = 10
"""The maximum number of a service's open paths that a finding names."""


def services(snapshot: Snapshot) -> Iterator[Finding]:
    """Report enabled services that have failed or are open to the internet."""
    for service in snapshot.inventory.proxy_services or ():
        if not service.enabled:
            continue
        subject = (
            f"Proxy service {safe_line(service.name or service.domain or service.id)}"
        )
        if service.meta.status in _FAILED:
            alert, message = _FAILED[service.meta.status]
            yield snapshot.finding(alert, subject, message)
        if service.mode == "http" and not (
            requires_authentication(service) or is_restricted(service)
        ):
            everyone = open_range(service)
            access = f", and its access list allows {everyone}" if everyone else ""
            paths = list(map(safe_line, open_paths(service)))
            if len(paths) > _SHOWN_PATHS:
                paths[_SHOWN_PATHS:] = ["…"]
            where = f" on {', '.join(paths)}" if paths else ""
            yield snapshot.finding(
                "NetBirdProxyServiceOpen",
                subject,
                f"is open to the internet: it requires no authentication"
                f"{where}{access}.",
            )


def clusters(snapshot: Snapshot) -> Iterator[Finding]:
    """Report clusters without a connected proxy."""
    for cluster in snapshot.inventory.proxy_clusters or ():
        if not cluster.online:
            yield snapshot.finding(
                "NetBirdProxyClusterOffline",
                f"Proxy cluster {safe_line(cluster.address)}",
                "has no connected proxy: its services cannot be reached.",
            )


ROWS = (Finder(clusters, ("proxy_clusters",)), Finder(services, ("proxy_services",)))

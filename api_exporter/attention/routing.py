"""Findings about networks and routes with one routing peer left, or none."""

from collections.abc import Iterator

from api_exporter.attention.finding import (
    Finder,
    Finding,
    Snapshot,
    list_names,
    safe_line,
)
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.facts.routing import (
    RoutingPeers,
    destination,
    network_by_resource,
    network_routing_peers,
    route_routing_peers,
    routers_of,
)
from api_exporter.netbird.records import NetworkResource, Route
from api_exporter.plurals import with_noun


def networks(snapshot: Snapshot) -> Iterator[Finding]:
    """Report networks with no connected routing peer, or only one of several."""
    inventory = snapshot.inventory
    routing = network_routing_peers(inventory)
    enabled_of: dict[str, list[NetworkResource]] = {}
    network_ids = network_by_resource(inventory.networks or ())
    for resource in inventory.network_resources or ():
        if resource.enabled and resource.id in network_ids:
            enabled_of.setdefault(network_ids[resource.id], []).append(resource)
    enabled = {r.id for r in inventory.network_resources or () if r.enabled}
    routers = {router.id: router for router in inventory.network_routers or ()}
    for network in inventory.networks or ():
        counts = routing[network.id]
        since = timestamp(counts.last_disconnected_at)
        subject = f"Network {safe_line(network.name or network.id)}"
        if counts.connected == 1 and counts.peers > 1:
            yield snapshot.finding(
                "NetBirdNetworkRedundancyLost", subject, _only_one(counts), since=since
            )
        if counts.connected:
            continue
        if not enabled.isdisjoint(network.resources or ()):
            disabled = [r for r in routers_of(network, routers) if not r.enabled]
            resources = enabled_of.get(network.id, ())
            number = with_noun(len(resources), "unreachable resource")
            names = list_names(r.name or r.address or r.id for r in resources)
            yield snapshot.finding(
                "NetBirdNetworkUnreachable",
                subject,
                f"cannot be reached: {_why_unreachable(counts, len(disabled))}"
                + (f"; {number}{names}." if resources else "."),
                since=since,
            )


def routes(snapshot: Snapshot) -> Iterator[Finding]:
    """Report routes with no connected routing peer, or only one of several.

    Routes with the same network id and destination replace each other.
    """
    enabled = [route for route in snapshot.inventory.routes or () if route.enabled]
    routing = route_routing_peers(snapshot.inventory)
    substitutes: dict[tuple[str, str], list[Route]] = {}
    for route in enabled:
        substitutes.setdefault((route.network_id, destination(route)), []).append(route)
    for (name, network), group in substitutes.items():
        parts = [routing[route.id] for route in group]
        counts = RoutingPeers(
            sum(one.peers for one in parts),
            sum(one.connected for one in parts),
            max(
                filter(None, (one.last_disconnected_at for one in parts)), default=None
            ),
        )
        since = timestamp(counts.last_disconnected_at)
        subject = f"Route {safe_line(name)} to {safe_line(network)}"
        if counts.connected == 0:
            yield snapshot.finding(
                "NetBirdRouteUnreachable",
                subject,
                f"leads to no connected peer: {_why_unreachable(counts)}.",
                since=since,
            )
        elif counts.connected == 1 and counts.peers > 1:
            yield snapshot.finding(
                "NetBirdRouteRedundancyLost", subject, _only_one(counts), since=since
            )


def _why_unreachable(counts: RoutingPeers, disabled: int = 0) -> str:
    if not counts.peers and disabled:
        return f"it has no enabled routing peer ({disabled:,} disabled)"
    if not counts.peers:
        return "it has no routing peer"
    if counts.peers == 1:
        return "its only routing peer is offline"
    return f"none of its {counts.peers:,} routing peers is connected"


def _only_one(counts: RoutingPeers) -> str:
    return f"has only 1 of {counts.peers:,} routing peers connected (no redundancy)."


ROWS = (
    Finder(
        networks,
        ("networks", "network_routers", "network_resources", "groups", "peers"),
        is_single=True,
    ),
    Finder(routes, ("routes", "groups", "peers"), is_single=True),
)

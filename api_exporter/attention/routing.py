"""Findings about networks and routes with one routing peer left, or none."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finding, Snapshot, listed, plain
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.facts.routing import (
    RoutingPeers,
    destination,
    network_of,
    network_routing_peers,
    route_routing_peers,
    routers_of,
)
from api_exporter.netbird.records import NetworkResource, Route
from api_exporter.plurals import counted

Found = Iterator[Finding]


def networks(snapshot: Snapshot) -> Found:
    """Report networks with no connected routing peer, or only one of several."""
    inventory = snapshot.inventory
    routing = network_routing_peers(inventory)
    lost: dict[str, list[NetworkResource]] = {}
    home = network_of(inventory.networks or ())
    for resource in inventory.network_resources or ():
        if resource.enabled and resource.id in home:
            lost.setdefault(home[resource.id], []).append(resource)
    enabled = {r.id for r in inventory.network_resources or () if r.enabled}
    routers = {router.id: router for router in inventory.network_routers or ()}
    for network in inventory.networks or ():
        behind = routing[network.id]
        since = timestamp(behind.gone)
        named = f"Network {plain(network.name or network.id)}"
        if behind.connected == 1 and behind.peers > 1:
            yield snapshot.finding(
                "NetBirdNetworkRedundancyLost",
                named,
                _last(behind),
                since=since,
            )
        if behind.connected:
            continue
        if not enabled.isdisjoint(network.resources or ()):
            disabled = [r for r in routers_of(network, routers) if not r.enabled]
            resources = lost.get(network.id, ())
            number = counted(len(resources), "unreachable resource")
            names = listed(r.name or r.address or r.id for r in resources)
            yield snapshot.finding(
                "NetBirdNetworkUnreachable",
                named,
                f"cannot be reached: {_none(behind, len(disabled))}"
                + (f"; {number}{names}." if resources else "."),
                since=since,
            )


def routes(snapshot: Snapshot) -> Found:
    """Report routes with no connected routing peer, or only one of several.

    Routes with the same identifier and network are each other's substitutes.
    """
    enabled = [route for route in snapshot.inventory.routes or () if route.enabled]
    routing = route_routing_peers(snapshot.inventory)
    alike: dict[tuple[str, str], list[Route]] = {}
    for route in enabled:
        alike.setdefault((route.network_id, destination(route)), []).append(route)
    for (name, network), group in alike.items():
        each = [routing[route.id] for route in group]
        behind = RoutingPeers(
            sum(one.peers for one in each),
            sum(one.connected for one in each),
            max(filter(None, (one.gone for one in each)), default=None),
        )
        since = timestamp(behind.gone)
        named = f"Route {plain(name)} to {plain(network)}"
        if behind.connected == 0:
            yield snapshot.finding(
                "NetBirdRouteUnreachable",
                named,
                f"leads to no connected peer: {_none(behind)}.",
                since=since,
            )
        elif behind.connected == 1 and behind.peers > 1:
            yield snapshot.finding(
                "NetBirdRouteRedundancyLost", named, _last(behind), since=since
            )


def _none(behind: RoutingPeers, disabled: int = 0) -> str:
    if not behind.peers and disabled:
        return f"it has no enabled routing peer ({disabled:,} disabled)"
    if not behind.peers:
        return "it has no routing peer"
    if behind.peers == 1:
        return "its only routing peer is offline"
    return f"none of its {behind.peers:,} routing peers is connected"


def _last(behind: RoutingPeers) -> str:
    return f"has only 1 of {behind.peers:,} routing peers connected (no redundancy)."

"""Routes (the older kind, without a network) and their routing peers."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Struct

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import labels, timestamp
from api_exporter.formatting import safe_line
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory, joined_once
from api_exporter.netbird.records import LIMITED_GROUPS
from api_exporter.netbird.resources import MINUTE, Resource, length_of
from api_exporter.netbird.routing import (
    Reach,
    RoutingPeers,
    only_one,
    reach_of,
    routing_peers,
    why_unreachable,
)
from api_exporter.subjects import Subject


class Route(Struct, frozen=True, gc=False, kw_only=True):
    """A route of the older kind (`/api/routes`)."""

    id: str
    network_id: str = ""
    network_type: str = ""
    network: str = ""
    domains: tuple[str, ...] | None = None
    enabled: bool = False
    masquerade: bool = False
    peer: str = ""
    peer_groups: Annotated[tuple[str, ...], LIMITED_GROUPS] | None = None


ROUTES = Resource(
    "routes",
    "api/routes",
    ListDecoder(Route),
    5 * MINUTE,
    permission="routes",
    named_ids=length_of("peer_groups"),
    place=3,
)


@joined_once
def route_routing_peers(inventory: Inventory) -> Mapping[str, RoutingPeers]:
    enabled = ((r.id, (r,)) for r in ROUTES.of(inventory) or () if r.enabled)
    return routing_peers(inventory, enabled)


def destination(route: Route) -> str:
    """Return the destination of a route: the address, or the domains."""
    if route.network_type == "Domain":  # NetBird sends a placeholder address
        return ",".join(sorted(route.domains or ()))
    return route.network


ROUTE = ObjectKind[Route](
    ROUTES, lambda r: labels(route_id=r.id, network_id=r.network_id)
)

FAMILIES = (
    ROUTE.count(
        "netbird_api_routes",
        "Number of routes by type, whether they are enabled and whether they"
        " masquerade",
        {
            "network_type": "network_type",
            "enabled": "enabled",
            "masquerade": "masquerade",
        },
    ),
    ROUTE.each(
        "netbird_api_route_info",
        "Properties of a route, to join on route_id (always 1)",
        "routes[].network_id, routes[].network_type, routes[].network,"
        " routes[].domains",
        labels=lambda route: labels(
            route_id=route.id,
            network_id=route.network_id,
            network_type=route.network_type,
            network=destination(route),
        ),
    ),
    ROUTE.enabled("netbird_api_route_enabled", "route"),
    ROUTE.joined(
        "netbird_api_route_routing_peers",
        "Number of routing peers of the enabled route",
        "routes[].peer, routes[].peer_groups among groups[].peers[], peers[]",
        route_routing_peers,
        lambda routing, route: routing[route.id].peers if route.enabled else None,
        needs=("groups", "peers"),
    ),
    ROUTE.joined(
        "netbird_api_route_routing_peers_connected",
        "Number of connected routing peers of the enabled route",
        "as netbird_api_route_routing_peers, among the connected peers[]",
        route_routing_peers,
        lambda routing, route: routing[route.id].connected if route.enabled else None,
        needs=("groups", "peers"),
        alert="0 on all routes to one destination: the destination is unreachable",
    ),
)


_LABELS = (("network_id", "object_id", r"(.*)\|.*"), ("network", "object", "(.+)"))

ROUTE_UNREACHABLE = FindingKind(
    "NetBirdRouteUnreachable",
    "Route",
    "route",
    lasts="5m",
    summary="Route {{ $labels.network_id }} leads to no connected peer",
    description="None of the routing peers of route {{ $labels.network_id }} to {{"
    " $labels.network }} is connected.",
    keep="10m",
    own_labels=_LABELS,
)
ROUTE_REDUNDANCY_LOST = FindingKind(
    "NetBirdRouteRedundancyLost",
    "Route",
    "route",
    lasts="15m",
    summary="Route {{ $labels.network_id }} has only one connected routing peer",
    description="All other routing peers of route {{ $labels.network_id }} to {{"
    " $labels.network }} are offline: there is no redundancy.",
    keep="10m",
    own_labels=_LABELS,
)


@joined_once
def _joined(inventory: Inventory) -> Mapping[tuple[str, str], RoutingPeers]:
    """Return the routing peers by network id and destination.

    Enabled routes that have both in common replace each other.
    """
    substitutes: dict[tuple[str, str], list[Route]] = {}
    for route in ROUTES.of(inventory) or ():
        if route.enabled:
            key = route.network_id, destination(route)
            substitutes.setdefault(key, []).append(route)
    return routing_peers(inventory, substitutes.items())


@joined_once
def count_reachable(inventory: Inventory) -> Reach | None:
    """Return the numbers of enabled routes; None while a list is unknown."""
    if not inventory.records.keys() >= {*ROUTE_REACH_READS}:
        return None
    return reach_of(_joined(inventory).values())


def findings(snapshot: Snapshot) -> Iterator[Finding]:
    for (network_id, network), counts in _joined(snapshot.inventory).items():
        # As NetBird identifies routes that replace each other.
        object_id = f"{network_id}|{network}"
        if counts.connected == 0:
            kind = ROUTE_UNREACHABLE
            message = f"leads to no connected peer: {why_unreachable(counts)}."
        elif counts.connected == 1 and counts.peers > 1:
            kind, message = ROUTE_REDUNDANCY_LOST, only_one(counts)
        else:
            continue
        yield snapshot.finding(
            kind,
            message,
            object_id=object_id,
            name=network,
            subject=f"Route {safe_line(network_id)} to {safe_line(network)}",
            since=timestamp(counts.last_disconnected_at),
        )


ROUTE_REACH_READS = ("routes", "groups", "peers")

FINDERS = (
    Finder(
        findings,
        (ROUTE_UNREACHABLE, ROUTE_REDUNDANCY_LOST),
        ROUTE_REACH_READS,
        hidden_in_outage=True,
    ),
)

SUBJECT = Subject(__name__, (ROUTES,), FAMILIES, FINDERS)

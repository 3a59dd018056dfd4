"""Routes of the older kind, and whether anybody still routes them."""

from collections.abc import Iterable, Iterator

from api_exporter.collectors import joins
from api_exporter.collectors.once import Once
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    boolean,
    counted,
    labels,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Route

READS = ("routes", "groups", "peers")

ROUTES = Metric(
    name="netbird_api_routes",
    help="Number of routes by type, and by whether they are enabled and masqueraded.",
    source="routes[].network_type, routes[].enabled, routes[].masquerade",
)
INFO = Metric(
    name="netbird_api_route_info",
    help="Properties of a route, to be joined by route_id. Always 1.",
    source="routes[].network_id, routes[].network_type, routes[].network,"
    " routes[].domains",
)
ENABLED = Metric(
    name="netbird_api_route_enabled",
    help="Whether the route is enabled.",
    source="routes[].enabled",
)
ROUTING_PEERS = Metric(
    name="netbird_api_route_routing_peers",
    help="Number of existing peers that route; of enabled routes only.",
    source="routes[].peer, routes[].peer_groups among groups[].peers[], peers[]",
)
ROUTING_PEERS_CONNECTED = Metric(
    name="netbird_api_route_routing_peers_connected",
    help="Number of connected peers that route; of enabled routes only.",
    source="as netbird_api_route_routing_peers, among the connected peers[]",
    alert="0 is an outage of the route",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the routes; those of routing peers need groups and peers."""
    routes = inventory.routes
    if routes is None:
        return
    yield counted(
        ROUTES,
        (
            labels(
                network_type=route.network_type,
                enabled=boolean(route.enabled),
                masquerade=boolean(route.masquerade),
            )
            for route in routes
        ),
    )
    yield Family(INFO, ((_info(route), 1) for route in routes))
    keyed = Once((labels(route_id=r.id, network_id=r.network_id), r) for r in routes)
    yield Family(ENABLED, ((key, int(route.enabled)) for key, route in keyed))
    if inventory.groups is None or inventory.peers is None:
        return
    present = joins.Present(inventory.peers)
    behind = Once(_behind(keyed, inventory.groups, present))
    yield from joins.routing(present, behind, ROUTING_PEERS, ROUTING_PEERS_CONNECTED)


def _behind(
    keyed: Iterable[tuple[Labels, Route]],
    groups: Iterable[Group],
    present: joins.Present,
) -> Iterator[tuple[Labels, int, int]]:
    """Of each enabled route, how many peers are behind it and how many connected."""
    routes = [(key, route) for key, route in keyed if route.enabled]
    wanted = {group for _, route in routes for group in route.peer_groups or ()}
    members = joins.members(groups, frozenset(wanted))
    existing, connected = present.whole().existing, present.connected
    for key, route in routes:
        found = joins.routing_peers(route.peer, route.peer_groups, members) & existing
        yield key, len(found), len(found & connected)


def _info(route: Route) -> str:
    return labels(
        route_id=route.id,
        network_id=route.network_id,
        network_type=route.network_type,
        network=destination(route),
    )


def destination(route: Route) -> str:
    """Where it leads: the address, or the domains."""
    if route.network_type == "Domain":  # the upstream sends a placeholder address
        return ",".join(sorted(route.domains or ()))
    return route.network

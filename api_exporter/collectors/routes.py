"""Routes of the older kind, and whether anybody still routes them."""

from collections.abc import Iterator

from api_exporter.collectors import joins
from api_exporter.collectors.once import Once, OnceInSteps
from api_exporter.exposition.text import (
    Family,
    Metric,
    boolean,
    counted,
    labels,
)
from api_exporter.netbird.facts.routing import destination, routing_peers
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Route

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
    routers = ((route.id, (route,)) for route in routes if route.enabled)
    routing = OnceInSteps(routing_peers(inventory.groups, inventory.peers, routers))
    enabled = Once((key, route) for key, route in keyed if route.enabled)
    yield from joins.routing(enabled, routing, ROUTING_PEERS, ROUTING_PEERS_CONNECTED)


def _info(route: Route) -> str:
    return labels(
        route_id=route.id,
        network_id=route.network_id,
        network_type=route.network_type,
        network=destination(route),
    )

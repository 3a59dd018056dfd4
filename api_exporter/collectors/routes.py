"""Routes (the older kind, without a network) and their routing peers."""

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import labels
from api_exporter.netbird.facts.routing import destination, route_routing_peers
from api_exporter.netbird.records import Route

ROUTES = ObjectKind[Route](
    "routes", "routes[]", lambda r: labels(route_id=r.id, network_id=r.network_id)
)

ROWS = (
    ROUTES.count(
        "netbird_api_routes",
        "Number of routes by type, whether they are enabled and whether they"
        " masquerade",
        {
            "network_type": "network_type",
            "enabled": "enabled",
            "masquerade": "masquerade",
        },
    ),
    ROUTES.each(
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
    ROUTES.field(
        "netbird_api_route_enabled",
        "Whether the route is enabled (1 = yes, 0 = no)",
        "enabled",
    ),
    ROUTES.joined(
        "netbird_api_route_routing_peers",
        "Number of routing peers of the enabled route",
        "routes[].peer, routes[].peer_groups among groups[].peers[], peers[]",
        route_routing_peers,
        lambda routing, route: routing[route.id].peers if route.enabled else None,
        needs=("groups", "peers"),
    ),
    ROUTES.joined(
        "netbird_api_route_routing_peers_connected",
        "Number of connected routing peers of the enabled route",
        "as netbird_api_route_routing_peers, among the connected peers[]",
        route_routing_peers,
        lambda routing, route: routing[route.id].connected if route.enabled else None,
        needs=("groups", "peers"),
        alert="0 is an outage of the route",
    ),
)

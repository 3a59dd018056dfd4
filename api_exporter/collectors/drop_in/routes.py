"""Routes of the older kind."""

from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, boolean, counted, labels
from api_exporter.netbird.records import Route

ROUTES = Metric(
    name="netbird_routes",
    help="Number of routes by whether they are enabled.",
    source="routes[].enabled",
)
BY_NETWORK_TYPE = Metric(
    name="netbird_routes_by_network_type",
    help="Number of routes by type.",
    source="routes[].network_type",
)
MASQUERADE = Metric(
    name="netbird_routes_masquerade",
    help="Number of routes by whether they are masqueraded.",
    source="routes[].masquerade",
)
INFO = Metric(
    name="netbird_route_info",
    help="Properties of a route. Always 1.",
    source="routes[]",
)


def families(routes: tuple[Route, ...]) -> Iterator[Family]:
    yield counted(ROUTES, (labels(enabled=boolean(r.enabled)) for r in routes))
    yield counted(
        BY_NETWORK_TYPE, (labels(network_type=r.network_type) for r in routes)
    )
    yield counted(
        MASQUERADE, (labels(masquerade=boolean(r.masquerade)) for r in routes)
    )
    yield Family(
        INFO,
        (
            (
                labels(
                    route_id=route.id,
                    network_id=route.network_id,
                    network_type=route.network_type,
                    description=route.description,
                ),
                1,
            )
            for route in routes
        ),
    )

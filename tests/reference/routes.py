"""Routes of NetBird's older kind."""

from tests.reference.bodies import Known
from tests.reference.fields import flag, text, texts
from tests.reference.joins import connected, has, routing_peers
from tests.reference.page import Page, Settings, boolean


def routes(known: Known, _settings: Settings) -> Page:
    page = Page()
    for route in known.get("routes", []):
        kind = text(route, "network_type")
        of = {"route_id": text(route, "id"), "network_id": text(route, "network_id")}
        page.add(
            "netbird_api_routes",
            1,
            network_type=kind,
            enabled=boolean(flag(route, "enabled")),
            masquerade=boolean(flag(route, "masquerade")),
        )
        network = text(route, "network")
        if kind == "Domain":
            network = ",".join(sorted(texts(route, "domains")))
        page.put("netbird_api_route_info", 1, **of, network_type=kind, network=network)
        page.put("netbird_api_route_enabled", flag(route, "enabled"), **of)
        if flag(route, "enabled") and has(known, "groups", "peers"):
            behind = routing_peers(known, route)
            page.put("netbird_api_route_routing_peers", len(behind), **of)
            page.put(
                "netbird_api_route_routing_peers_connected",
                connected(known, behind),
                **of,
            )
    return page

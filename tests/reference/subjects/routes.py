"""Routes."""

from tests.reference.fields import Known, flag, text, texts
from tests.reference.joins import connected, has, routing_peers
from tests.reference.page import Page, Settings, boolean
from tests.reference.shapes import WORDS, thing

RECORDS = {
    "routes": thing(
        "id network_id network_type network peer",
        "enabled masquerade",
        domains=WORDS,
        peer_groups=WORDS,
    )
}


def routes(page: Page, known: Known, _settings: Settings) -> None:
    for route in known.get("routes", []):
        kind = text(route, "network_type")
        of = {"route_id": text(route, "id"), "network_id": text(route, "network_id")}
        flags = {n: boolean(flag(route, n)) for n in ("enabled", "masquerade")}
        page.add("routes", 1, network_type=kind, **flags)
        network = text(route, "network")
        if kind == "Domain":
            network = ",".join(sorted(texts(route, "domains")))
        page.put("route_info", 1, **of, network_type=kind, network=network)
        page.put("route_enabled", flag(route, "enabled"), **of)
        if flag(route, "enabled") and has(known, "groups", "peers"):
            behind = routing_peers(known, route)
            page.put("route_routing_peers", len(behind), **of)
            page.put("route_routing_peers_connected", connected(known, behind), **of)

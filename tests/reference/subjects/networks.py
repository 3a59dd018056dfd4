"""Networks and the older routes: routers, resources and routing peers."""

from tests.reference.fields import Known, Record, flag, ids, number, objects, own, text
from tests.reference.joins import connected, has, named, routing_peers
from tests.reference.page import Page, Settings
from tests.reference.shapes import GROUPS, WORDS, thing

RECORDS = {
    "networks": thing(
        "id", shown="name", routers=WORDS, resources=WORDS, policies=WORDS
    ),
    "network_routers": thing("id peer", "enabled", "metric", peer_groups=WORDS),
    "network_resources": thing(
        "id", "enabled", shown="name type address", groups=GROUPS
    ),
}


ROUTING = ("networks", "network_routers", "groups", "peers")


def networks(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "networks"):
        page.put("networks", len(known["networks"]))
        for network in known["networks"]:
            _network(page, known, network)
    for resource in known.get("network_resources", []):
        _resource(page, known, resource)


def _network(page: Page, known: Known, network: Record) -> None:
    of = own("network", network)
    page.put("network_info", 1, **of)
    page.put("network_policies", len(ids(network, "policies")), **of)
    if has(known, "network_resources"):
        resources = named(known["network_resources"])
        listed = [resources[i] for i in ids(network, "resources") if i in resources]
        page.halves("network_resources", listed, "enabled", **of)
    if has(known, "network_routers"):
        routers = named(known["network_routers"])
        for router in ids(network, "routers"):
            if router in routers and _network_of(known, "routers", router) is network:
                ids_ = {"network_id": text(network, "id"), "router_id": router}
                enabled = flag(routers[router], "enabled")
                page.put("network_router_enabled", enabled, **ids_)
                metric = number(routers[router], "metric")
                page.put("network_router_metric", metric, **ids_)
    if has(known, *ROUTING):
        behind = _behind(known, network)
        page.put("network_routing_peers", len(behind), **of)
        page.put("network_routing_peers_connected", connected(known, behind), **of)


def _behind(known: Known, network: Record) -> set[str]:
    """Return the existing peers behind a network's enabled routers."""
    peers: set[str] = set()
    for router in known["network_routers"]:
        owner = _network_of(known, "routers", text(router, "id"))
        if owner is network and flag(router, "enabled"):
            peers |= routing_peers(known, router)
    return peers


def _network_of(known: Known, field: str, id_: str) -> Record | None:
    """Return the network that lists an object: the one with the greatest id."""
    listing = [network for network in known["networks"] if id_ in ids(network, field)]
    return max(listing, key=lambda network: text(network, "id"), default=None)


def _resource(page: Page, known: Known, resource: Record) -> None:
    of = own("network_resource", resource)
    page.put("network_resource_enabled", flag(resource, "enabled"), **of)
    page.put("network_resource_groups", len(objects(resource, "groups")), **of)
    if not has(known, "networks"):
        return
    network = _network_of(known, "resources", text(resource, "id"))
    page.put(
        "network_resource_info",
        1,
        **of,
        network_id=text(network, "id") if network else "",
        resource_type=text(resource, "type"),
        address=text(resource, "address"),
    )
    if network and has(known, *ROUTING):
        there = connected(known, _behind(known, network))
        page.put("network_resource_routing_peers_connected", there, **of)

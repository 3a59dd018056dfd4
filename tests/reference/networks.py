"""Networks: their routers, resources and routing peers."""

from tests.reference.bodies import Known
from tests.reference.fields import Record, flag, ids, number, objects, text
from tests.reference.joins import connected, has, named, routing_peers
from tests.reference.page import Page, Settings, boolean

ROUTING = ("networks", "network_routers", "groups", "peers")


def networks(known: Known, _settings: Settings) -> Page:
    page = Page()
    if has(known, "networks"):
        page.put("netbird_api_networks", len(known["networks"]))
        for network in known["networks"]:
            _network(page, known, network)
    for resource in known.get("network_resources", []):
        _resource(page, known, resource)
    return page


def _network(page: Page, known: Known, network: Record) -> None:
    id_ = text(network, "id")
    of = {"network_id": id_, "network": text(network, "name")}
    page.put("netbird_api_network_info", 1, **of)
    page.put("netbird_api_network_policies", len(ids(network, "policies")), **of)
    if has(known, "network_resources"):
        resources = named(known["network_resources"])
        listed = [resources[i] for i in ids(network, "resources") if i in resources]
        for half in (True, False):
            page.put(
                "netbird_api_network_resources",
                sum(flag(resource, "enabled") == half for resource in listed),
                **of,
                enabled=boolean(half),
            )
    if has(known, "network_routers"):
        routers = named(known["network_routers"])
        for router in ids(network, "routers"):
            if router not in routers:
                continue
            for family, value in (
                ("enabled", flag(routers[router], "enabled")),
                ("metric", number(routers[router], "metric")),
            ):
                page.put(
                    f"netbird_api_network_router_{family}",
                    value,
                    network_id=id_,
                    router_id=router,
                )
    if has(known, *ROUTING):
        behind = _behind(known, network)
        page.put("netbird_api_network_routing_peers", len(behind), **of)
        page.put(
            "netbird_api_network_routing_peers_connected",
            connected(known, behind),
            **of,
        )


def _behind(known: Known, network: Record) -> set[str]:
    """Return the existing peers behind a network's enabled routers."""
    peers: set[str] = set()
    for router in known["network_routers"]:
        if text(router, "id") in ids(network, "routers") and flag(router, "enabled"):
            peers |= routing_peers(known, router)
    return peers


def _resource(page: Page, known: Known, resource: Record) -> None:
    id_ = text(resource, "id")
    of = {"network_resource_id": id_, "network_resource": text(resource, "name")}
    page.put("netbird_api_network_resource_enabled", flag(resource, "enabled"), **of)
    page.put(
        "netbird_api_network_resource_groups", len(objects(resource, "groups")), **of
    )
    if not has(known, "networks"):
        return
    network = None
    for candidate in known["networks"]:
        if id_ in ids(candidate, "resources"):
            network = candidate
    page.put(
        "netbird_api_network_resource_info",
        1,
        **of,
        network_id=text(network, "id") if network else "",
        resource_type=text(resource, "type"),
        address=text(resource, "address"),
    )
    if network and has(known, *ROUTING):
        page.put(
            "netbird_api_network_resource_routing_peers_connected",
            connected(known, _behind(known, network)),
            **of,
        )

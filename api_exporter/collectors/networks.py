"""Networks: their resources and routing peers."""

from collections.abc import Iterable, Mapping

from api_exporter.collectors.rows import ObjectKind, distinct_count, length
from api_exporter.exposition.text import boolean, labels
from api_exporter.netbird.facts.routing import (
    network_by_resource,
    network_routing_peers,
    routers_of,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Network, NetworkResource, NetworkRouter

NETWORKS = ObjectKind[Network](
    "networks",
    "networks[]",
    lambda network: labels(network_id=network.id, network=network.name),
)
NETWORK_RESOURCES = ObjectKind[NetworkResource](
    "network_resources",
    "networks/resources[]",
    lambda r: labels(network_resource_id=r.id, network_resource=r.name),
)


def _resource_states(inventory: Inventory) -> Iterable[tuple[Network, bool]]:
    return ((n, state) for n in inventory.networks or () for state in (True, False))


RESOURCE_STATES = ObjectKind[tuple[Network, bool]](
    "networks",
    "networks[]",
    lambda state: labels(
        network_id=state[0].id, network=state[0].name, enabled=boolean(state[1])
    ),
    find=_resource_states,
    needs=("network_resources",),
)
"""Each network twice: for its enabled and its disabled resources."""


def _routers(inventory: Inventory) -> Iterable[tuple[Network, NetworkRouter]]:
    by_id = {router.id: router for router in inventory.network_routers or ()}
    return ((n, r) for n in inventory.networks or () for r in routers_of(n, by_id))


ROUTERS = ObjectKind[tuple[Network, NetworkRouter]](
    "networks",
    "networks[]",
    lambda routed: labels(network_id=routed[0].id, router_id=routed[1].id),
    find=_routers,
    needs=("network_routers",),
)


Routed = tuple[NetworkResource, str | None]
"""A network resource, and the id of its network."""


def _routed(inventory: Inventory) -> Iterable[Routed]:
    network_ids = network_by_resource(inventory.networks or ())
    return ((r, network_ids.get(r.id)) for r in inventory.network_resources or ())


ROUTED = ObjectKind[Routed](
    "network_resources",
    "networks/resources[]",
    lambda routed: labels(
        network_resource_id=routed[0].id, network_resource=routed[0].name
    ),
    find=_routed,
    needs=("networks",),
)


def _enabled_by_id(inventory: Inventory) -> Mapping[str, bool]:
    return {r.id: r.enabled for r in inventory.network_resources or ()}


ROWS = (
    NETWORKS.total("netbird_api_networks", "Number of networks"),
    NETWORKS.each(
        "netbird_api_network_info",
        "Properties of a network, to join on network_id (always 1)",
        "networks[]",
    ),
    RESOURCE_STATES.joined(
        "netbird_api_network_resources",
        "Number of the network's resources by whether they are enabled",
        "networks[].resources[] among networks/resources[].enabled",
        _enabled_by_id,
        lambda enabled, state: sum(
            enabled.get(id_) is state[1] for id_ in set(state[0].resources or ())
        ),
    ),
    NETWORKS.field(
        "netbird_api_network_policies",
        "Number of policies that give access to the network",
        "policies",
        distinct_count,
        alert="0 for a network with resources: no policy gives access",
    ),
    NETWORKS.joined(
        "netbird_api_network_routing_peers",
        "Number of routing peers of the network's enabled routers",
        "networks[].routers[] among networks/routers[].{enabled,peer,peer_groups},"
        " groups[].peers[], peers[]",
        network_routing_peers,
        lambda routing, network: routing[network.id].peers,
        needs=("network_routers", "groups", "peers"),
    ),
    NETWORKS.joined(
        "netbird_api_network_routing_peers_connected",
        "Number of connected routing peers of the network's enabled routers",
        "as netbird_api_network_routing_peers, among the connected peers[]",
        network_routing_peers,
        lambda routing, network: routing[network.id].connected,
        needs=("network_routers", "groups", "peers"),
        alert="0 in a network with resources: outage; 1: no redundancy",
    ),
    ROUTERS.each(
        "netbird_api_network_router_enabled",
        "Whether a router of the network is enabled (1 = yes, 0 = no)",
        "networks[].routers[] among networks/routers[].enabled",
        lambda routed: int(routed[1].enabled),
    ),
    ROUTERS.each(
        "netbird_api_network_router_metric",
        "Priority of a router of the network, where the lowest number is preferred",
        "networks[].routers[] among networks/routers[].metric",
        lambda routed: routed[1].metric,
    ),
    ROUTED.each(
        "netbird_api_network_resource_info",
        "Properties of a network resource, to join on network_resource_id (always 1)",
        "networks/resources[], networks[].resources[]",
        labels=lambda routed: labels(
            network_resource_id=routed[0].id,
            network_resource=routed[0].name,
            network_id=routed[1] or "",
            resource_type=routed[0].type,
            address=routed[0].address,
        ),
    ),
    NETWORK_RESOURCES.field(
        "netbird_api_network_resource_enabled",
        "Whether the network resource is enabled (1 = yes, 0 = no)",
        "enabled",
    ),
    ROUTED.joined(
        "netbird_api_network_resource_routing_peers_connected",
        "Number of connected routing peers of the resource's network (absent for a"
        " resource without a network)",
        "netbird_api_network_routing_peers_connected of the network that lists it",
        network_routing_peers,
        lambda routing, routed: (
            None if routed[1] is None else routing[routed[1]].connected
        ),
        needs=("network_routers", "groups", "peers"),
        alert="0 for an enabled resource: the resource is unreachable",
    ),
    NETWORK_RESOURCES.field(
        "netbird_api_network_resource_groups",
        "Number of groups that contain the network resource",
        "groups",
        length,
    ),
)

"""Networks behind routing peers: what is there, and whether anybody still routes."""

from collections.abc import Generator, Iterable, Iterator, Mapping

from api_exporter.collectors import joins
from api_exporter.collectors.once import Once
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    Sample,
    boolean,
    labels,
    single,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Group,
    Network,
    NetworkResource,
    NetworkRouter,
)

READS = ("networks", "network_routers", "network_resources", "groups", "peers")

NETWORKS = Metric(
    name="netbird_api_networks",
    help="Number of networks.",
    source="networks[]",
)
INFO = Metric(
    name="netbird_api_network_info",
    help="Properties of a network, to be joined by network_id. Always 1.",
    source="networks[]",
)
RESOURCES = Metric(
    name="netbird_api_network_resources",
    help="Number of the network's resources by whether they are enabled.",
    source="networks[].resources[] among networks/resources[].enabled",
)
POLICIES = Metric(
    name="netbird_api_network_policies",
    help="Number of policies that give access to the network.",
    source="networks[].policies[]",
    alert="0 for a network with resources: nobody can reach it",
)
ROUTING_PEERS = Metric(
    name="netbird_api_network_routing_peers",
    help="Number of existing peers behind the network's enabled routers.",
    source="networks[].routers[] among networks/routers[].{enabled,peer,peer_groups},"
    " groups[].peers[], peers[]",
)
ROUTING_PEERS_CONNECTED = Metric(
    name="netbird_api_network_routing_peers_connected",
    help="Number of connected peers behind the network's enabled routers.",
    source="as netbird_api_network_routing_peers, among the connected peers[]",
    alert="0 in a network with resources is an outage, 1 is lost redundancy",
)
ROUTER_ENABLED = Metric(
    name="netbird_api_network_router_enabled",
    help="Whether a router of the network is enabled.",
    source="networks[].routers[] among networks/routers[].enabled",
)
ROUTER_METRIC = Metric(
    name="netbird_api_network_router_metric",
    help="Metric of a router of the network: of several, the lowest one is preferred.",
    source="networks[].routers[] among networks/routers[].metric",
)
RESOURCE_INFO = Metric(
    name="netbird_api_network_resource_info",
    help="Properties of a network resource, to be joined by network_resource_id."
    " Always 1.",
    source="networks/resources[], networks[].resources[]",
)
RESOURCE_ENABLED = Metric(
    name="netbird_api_network_resource_enabled",
    help="Whether the network resource is enabled.",
    source="networks/resources[].enabled",
)
RESOURCE_ROUTING_PEERS_CONNECTED = Metric(
    name="netbird_api_network_resource_routing_peers_connected",
    help="Number of connected peers that lead to the network resource; absent for one"
    " in no network.",
    source="netbird_api_network_routing_peers_connected of the network that lists it",
    alert="0 on an enabled resource: nobody can reach it",
)
RESOURCE_GROUPS = Metric(
    name="netbird_api_network_resource_groups",
    help="Number of groups that the network resource is in; without one, no policy can"
    " name it by group.",
    source="networks/resources[].groups",
)

Connected = Iterable[tuple[str, int]]
"""How many connected peers route for a network, beside its id."""


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the networks; each join only while both its sides are known."""
    connected = None
    if inventory.networks is not None:
        connected = yield from _networks(inventory.networks, inventory)
    if inventory.network_resources is not None:
        yield from _each_resource(
            inventory.network_resources, inventory.networks, connected
        )


def _networks(
    networks: tuple[Network, ...], inventory: Inventory
) -> Generator[Family | None, None, Connected | None]:
    """Returns None while a side of that join is unknown."""
    yield single(NETWORKS, len(networks))
    keyed = Once((labels(network_id=n.id, network=n.name), n) for n in networks)
    yield Family(INFO, ((key, 1) for key, _ in keyed))
    if inventory.network_resources is not None:
        resources = _resources(networks, inventory.network_resources)
        yield Family(RESOURCES, resources)
    yield Family(POLICIES, ((key, len(n.policies or ())) for key, n in keyed))
    routers = inventory.network_routers
    if routers is None:
        return None
    by_id = {router.id: router for router in routers}
    routing: Connected | None = None
    if inventory.groups is not None and inventory.peers is not None:
        present = joins.Present(inventory.peers)
        behind = Once(_behind(keyed, by_id, inventory.groups, present))
        yield from joins.routing(
            present, behind, ROUTING_PEERS, ROUTING_PEERS_CONNECTED
        )
        routing = (
            (n.id, there) for n, (_, _, there) in zip(networks, behind, strict=True)
        )
    routed = Once(
        (labels(network_id=n.id, router_id=router.id), router)
        for n in networks
        for router in routers_of(n, by_id)
    )
    yield Family(ROUTER_ENABLED, ((key, int(r.enabled)) for key, r in routed))
    yield Family(ROUTER_METRIC, ((key, r.metric) for key, r in routed))
    return routing


def _each_resource(
    resources: tuple[NetworkResource, ...],
    networks: tuple[Network, ...] | None,
    connected: Connected | None,
) -> Iterator[Family]:
    if networks is not None:
        yield Family(RESOURCE_INFO, _info(resources, networks))
    keyed = Once(
        (labels(network_resource_id=r.id, network_resource=r.name), r)
        for r in resources
    )
    yield Family(RESOURCE_ENABLED, ((key, int(r.enabled)) for key, r in keyed))
    if networks is not None and connected is not None:
        reached = _reached(keyed, networks, connected)
        yield Family(RESOURCE_ROUTING_PEERS_CONNECTED, reached)
    yield Family(RESOURCE_GROUPS, ((key, len(r.groups or ())) for key, r in keyed))


def network_of(networks: Iterable[Network]) -> dict[str, str]:
    """The id of each resource's network, which is the last that lists it."""
    return {id_: n.id for n in networks for id_ in n.resources or ()}


def _info(
    resources: Iterable[NetworkResource], networks: Iterable[Network]
) -> Iterator[Sample]:
    found = network_of(networks)
    for resource in resources:
        key = labels(
            network_resource_id=resource.id,
            network_resource=resource.name,
            network_id=found.get(resource.id, ""),
            resource_type=resource.type,
            address=resource.address,
        )
        yield key, 1


def _reached(
    keyed: Iterable[tuple[Labels, NetworkResource]],
    networks: Iterable[Network],
    connected: Connected,
) -> Iterator[Sample]:
    found, counts = network_of(networks), dict(connected)
    for key, resource in keyed:
        if resource.id in found:
            yield key, counts[found[resource.id]]


def _resources(
    networks: Iterable[Network], resources: Iterable[NetworkResource]
) -> Iterator[Sample]:
    enabled = {resource.id: resource.enabled for resource in resources}
    for n in networks:
        for half in (True, False):
            yield (
                labels(network_id=n.id, network=n.name, enabled=boolean(half)),
                sum(enabled.get(id_) is half for id_ in set(n.resources or ())),
            )


def _behind(
    keyed: Iterable[tuple[Labels, Network]],
    routers: Mapping[str, NetworkRouter],
    groups: Iterable[Group],
    present: joins.Present,
) -> Iterator[tuple[Labels, int, int]]:
    """Of each network, how many peers are behind it and how many of them connected."""
    wanted = {group for r in routers.values() for group in r.peer_groups or ()}
    members = joins.members(groups, frozenset(wanted))
    existing, connected = present.whole().existing, present.connected
    for key, network in keyed:
        found = routing_peers(network, routers, members) & existing
        yield key, len(found), len(found & connected)


def routers_of(
    network: Network, by_id: Mapping[str, NetworkRouter]
) -> Iterator[NetworkRouter]:
    """The routers that the network lists and that exist, each once."""
    for router_id in dict.fromkeys(network.routers or ()):
        if router_id in by_id:
            yield by_id[router_id]


def routing_peers(
    network: Network, by_id: Mapping[str, NetworkRouter], members: joins.Members
) -> frozenset[str]:
    """The ids of the peers behind the network's enabled routers."""
    return frozenset().union(
        *(
            joins.routing_peers(router.peer, router.peer_groups, members)
            for router in routers_of(network, by_id)
            if router.enabled
        )
    )

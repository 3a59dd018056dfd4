"""Networks behind routing peers: what is there, and whether anybody still routes."""

from collections.abc import Iterable, Iterator, Mapping

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
    Peer,
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


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the networks; each join only while both its sides are known."""
    networks = inventory.networks
    if networks is None:
        return
    yield single(NETWORKS, len(networks))
    keyed = Once((labels(network_id=n.id, network=n.name), n) for n in networks)
    yield Family(INFO, ((key, 1) for key, _ in keyed))
    if inventory.network_resources is not None:
        resources = _resources(networks, inventory.network_resources)
        yield Family(RESOURCES, resources)
    yield Family(POLICIES, ((key, len(n.policies or ())) for key, n in keyed))
    routers = inventory.network_routers
    if routers is None:
        return
    by_id = {router.id: router for router in routers}
    if inventory.groups is not None and inventory.peers is not None:
        behind = Once(_behind(keyed, by_id, inventory.groups, inventory.peers))
        yield Family(
            ROUTING_PEERS, ((key, peers) for key, peers, _ in behind), at_once=1
        )
        yield Family(
            ROUTING_PEERS_CONNECTED,
            ((key, there) for key, _, there in behind),
            at_once=1,
        )
    yield Family(
        ROUTER_ENABLED,
        (
            (labels(network_id=n.id, router_id=router.id), int(router.enabled))
            for n in networks
            for router in _routers(n, by_id)
        ),
    )


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
    peers: tuple[Peer, ...],
) -> Iterator[tuple[Labels, int, int]]:
    """Of each network, how many peers are behind it and how many of them connected."""
    wanted = {group for r in routers.values() for group in r.peer_groups or ()}
    members = joins.members(groups, frozenset(wanted))
    existing = joins.existing(peers)
    connected = joins.connected(peers)
    for key, network in keyed:
        found = _routing_peers(network, routers, members) & existing
        yield key, len(found), len(found & connected)


def _routers(
    network: Network, by_id: Mapping[str, NetworkRouter]
) -> Iterator[NetworkRouter]:
    """The routers that the network lists and that exist, each once."""
    for router_id in dict.fromkeys(network.routers or ()):
        if router_id in by_id:
            yield by_id[router_id]


def _routing_peers(
    network: Network, by_id: Mapping[str, NetworkRouter], members: joins.Members
) -> frozenset[str]:
    return frozenset().union(
        *(
            joins.routing_peers(router.peer, router.peer_groups, members)
            for router in _routers(network, by_id)
            if router.enabled
        )
    )

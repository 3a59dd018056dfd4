"""Networks behind routing peers: what is there, and whether anybody still routes."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import chain

from api_exporter.collectors import joins
from api_exporter.collectors.once import Once, OnceInSteps
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    Sample,
    boolean,
    labels,
    single,
)
from api_exporter.netbird.facts.routing import (
    RoutingPeers,
    network_of,
    network_routing_peers,
    routers_of,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Network, NetworkResource

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


Routing = OnceInSteps[Mapping[str, RoutingPeers]]
"""Who routes for each network, by its id."""

Home = OnceInSteps[Mapping[str, str]]
"""The id of each resource's network."""


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the networks; each join only while both its sides are known."""
    routing = None
    if inventory.networks is not None:
        routing = yield from _networks(inventory.networks, inventory)
    if inventory.network_resources is not None:
        yield from _each_resource(
            inventory.network_resources, inventory.networks, routing
        )


def _networks(
    networks: tuple[Network, ...], inventory: Inventory
) -> Generator[Family | None, None, Routing | None]:
    """Returns None while a side of that join is unknown."""
    yield single(NETWORKS, len(networks))
    keyed = Once((labels(network_id=n.id, network=n.name), n) for n in networks)
    yield Family(INFO, ((key, 1) for key, _ in keyed))
    if inventory.network_resources is not None:
        resources = _resources(networks, inventory.network_resources)
        yield Family(RESOURCES, resources, at_once=1)
    yield Family(POLICIES, ((key, len(set(n.policies or ()))) for key, n in keyed))
    routers = inventory.network_routers
    if routers is None:
        return None
    routing = None
    if inventory.groups is not None and inventory.peers is not None:
        routing = OnceInSteps(
            network_routing_peers(networks, routers, inventory.groups, inventory.peers)
        )
        yield from joins.routing(keyed, routing, ROUTING_PEERS, ROUTING_PEERS_CONNECTED)
    by_id = {router.id: router for router in routers}
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
    routing: Routing | None,
) -> Iterator[Family]:
    home = OnceInSteps(network_of(networks or ()))
    if networks is not None:
        yield Family(RESOURCE_INFO, _info(resources, home), steps=home.steps)
    keyed = Once(
        (labels(network_resource_id=r.id, network_resource=r.name), r)
        for r in resources
    )
    yield Family(RESOURCE_ENABLED, ((key, int(r.enabled)) for key, r in keyed))
    if networks is not None and routing is not None:
        yield Family(
            RESOURCE_ROUTING_PEERS_CONNECTED,
            _reached(keyed, home, routing),
            steps=chain(home.steps, routing.steps),
        )
    yield Family(RESOURCE_GROUPS, ((key, len(r.groups or ())) for key, r in keyed))


def _info(resources: Iterable[NetworkResource], home: Home) -> Iterator[Sample]:
    found = home.whole()
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
    home: Home,
    routing: Routing,
) -> Iterator[Sample]:
    found, behind = home.whole(), routing.whole()
    for key, resource in keyed:
        if resource.id in found:
            yield key, behind[found[resource.id]].connected


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

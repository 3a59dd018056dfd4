"""Networks: their resources and routing peers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated

from msgspec import Struct

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.collectors.rows import ObjectKind, distinct_count, id_and_name, length
from api_exporter.exposition.text import boolean, labels, timestamp
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory, joined_once
from api_exporter.netbird.records import LIMITED_GROUPS, Count, GroupId, ShownText
from api_exporter.netbird.resources import MINUTE, Resource, length_of
from api_exporter.netbird.routing import (
    Reach,
    RoutingPeers,
    only_one,
    reach_of,
    routing_peers,
    why_unreachable,
)
from api_exporter.subjects import Subject


class Network(Struct, frozen=True, gc=False, kw_only=True):
    """Addresses behind routers (`/api/networks`). All lists hold ids."""

    id: str
    name: ShownText = ""
    routers: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    policies: tuple[str, ...] | None = None


class NetworkRouter(Struct, frozen=True, gc=False, kw_only=True):
    """A router of a network: a peer, or all peers of groups."""

    id: str
    enabled: bool = False
    metric: Count = 0
    peer: str = ""
    peer_groups: Annotated[tuple[str, ...], LIMITED_GROUPS] | None = None


class NetworkResource(Struct, frozen=True, gc=False, kw_only=True):
    """An address in a network (`/api/networks/resources`)."""

    id: str
    name: ShownText = ""
    type: ShownText = ""
    address: ShownText = ""
    enabled: bool = False
    groups: tuple[GroupId, ...] | None = None


# If two networks list a router or a resource, the one with the greatest id counts.
NETWORKS = Resource(
    "networks",
    "api/networks",
    ListDecoder(Network, ordered=True),
    5 * MINUTE,
    permission="networks",
    named_ids=length_of("routers", "resources"),
    place=3,
)
NETWORK_ROUTERS = Resource(
    "network_routers",
    "api/networks/routers",
    ListDecoder(NetworkRouter),
    5 * MINUTE,
    absence="network: routers not found",
    permission="networks",
    named_ids=length_of("peer_groups"),
    place=3,
)
NETWORK_RESOURCES = Resource(
    "network_resources",
    "api/networks/resources",
    ListDecoder(NetworkResource),
    5 * MINUTE,
    absence="network: resources not found",
    permission="networks",
    place=3,
)


@joined_once
def network_routing_peers(inventory: Inventory) -> Mapping[str, RoutingPeers]:
    """Return the routing peers of the enabled routers of each network."""
    enabled = (
        (network_id, (router for router in routers if router.enabled))
        for network_id, routers in routers_by_network(inventory).items()
    )
    return routing_peers(inventory, enabled)


def routers_by_network(inventory: Inventory) -> Mapping[str, Sequence[NetworkRouter]]:
    """Return the routers of each network: joins look up a router's groups once."""
    by_id = {router.id: router for router in NETWORK_ROUTERS.of(inventory) or ()}
    networks = sorted(NETWORKS.of(inventory) or (), key=attrgetter("id"), reverse=True)
    return {
        network.id: [by_id.pop(id_) for id_ in network.routers or () if id_ in by_id]
        for network in networks
    }


def network_by_resource(inventory: Inventory) -> Mapping[str, str]:
    """Return the network id of each resource: the greatest id, if several list it."""
    found: dict[str, str] = {}
    for network in sorted(NETWORKS.of(inventory) or (), key=attrgetter("id")):
        found.update(dict.fromkeys(network.resources or (), network.id))
    return found


NETWORK = ObjectKind[Network](NETWORKS, id_and_name("network"))

NETWORK_RESOURCE = ObjectKind[NetworkResource](
    NETWORK_RESOURCES, id_and_name("network_resource")
)


ResourceCount = tuple[Network, bool, int]


def _resource_counts(inventory: Inventory) -> Iterator[ResourceCount]:
    """Yield each network twice, for its enabled and its disabled resources."""
    enabled = {r.id: r.enabled for r in NETWORK_RESOURCES.of(inventory) or ()}
    for network in NETWORKS.of(inventory) or ():
        counts = Counter(map(enabled.get, set(network.resources or ())))
        yield from ((network, state, counts[state]) for state in (True, False))


RESOURCE_COUNT = ObjectKind[ResourceCount](
    NETWORKS,
    lambda c: labels(network_id=c[0].id, network=c[0].name, enabled=boolean(c[1])),
    find=_resource_counts,
    needs=("network_resources",),
)


def _routers(inventory: Inventory) -> Iterable[tuple[Network, NetworkRouter]]:
    routers = routers_by_network(inventory)
    return [(n, r) for n in NETWORKS.of(inventory) or () for r in routers[n.id]]


ROUTER = ObjectKind[tuple[Network, NetworkRouter]](
    NETWORKS,
    lambda routed: labels(network_id=routed[0].id, router_id=routed[1].id),
    find=_routers,
    needs=("network_routers",),
)

Routed = tuple[NetworkResource, str | None]
"""A network resource, and the id of its network."""


def _routed(inventory: Inventory) -> Iterable[Routed]:
    network_ids = network_by_resource(inventory)
    return [(r, network_ids.get(r.id)) for r in NETWORK_RESOURCES.of(inventory) or ()]


ROUTED = ObjectKind[Routed](
    NETWORK_RESOURCES,
    lambda routed: labels(
        network_resource_id=routed[0].id, network_resource=routed[0].name
    ),
    find=_routed,
    needs=("networks",),
)


FAMILIES = (
    NETWORK.total("netbird_api_networks", "Number of networks"),
    NETWORK.info(
        "netbird_api_network_info",
        "Properties of a network, to join on network_id (always 1)",
    ),
    RESOURCE_COUNT.each(
        "netbird_api_network_resources",
        "Number of the network's resources by whether they are enabled",
        "networks[].resources[] among networks/resources[].enabled",
        lambda found: found[2],
    ),
    NETWORK.field(
        "netbird_api_network_policies",
        "Number of policies that give access to the network",
        "policies",
        distinct_count,
        alert="0 for a network with resources: no policy gives access",
    ),
    NETWORK.joined(
        "netbird_api_network_routing_peers",
        "Number of routing peers of the network's enabled routers",
        "networks[].routers[] among networks/routers[].{enabled,peer,peer_groups},"
        " groups[].peers[], peers[]",
        network_routing_peers,
        lambda routing, network: routing[network.id].peers,
        needs=("network_routers", "groups", "peers"),
    ),
    NETWORK.joined(
        "netbird_api_network_routing_peers_connected",
        "Number of connected routing peers of the network's enabled routers",
        "as netbird_api_network_routing_peers, among the connected peers[]",
        network_routing_peers,
        lambda routing, network: routing[network.id].connected,
        needs=("network_routers", "groups", "peers"),
        alert="0 in a network with resources: outage; 1: no redundancy",
    ),
    ROUTER.each(
        "netbird_api_network_router_enabled",
        "Whether a router of the network is enabled (1 = yes, 0 = no)",
        "networks[].routers[] among networks/routers[].enabled",
        lambda routed: int(routed[1].enabled),
    ),
    ROUTER.each(
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
    NETWORK_RESOURCE.enabled(
        "netbird_api_network_resource_enabled", "network resource"
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
    NETWORK_RESOURCE.field(
        "netbird_api_network_resource_groups",
        "Number of groups that contain the network resource",
        "groups",
        length,
    ),
)


NETWORK_UNREACHABLE = FindingKind(
    "NetBirdNetworkUnreachable",
    "Network",
    "network",
    lasts="5m",
    summary="Network {{ $labels.network }} cannot be reached",
    description="None of the routing peers of network {{ $labels.network }} is"
    " connected.",
    keep="10m",
)
NETWORK_REDUNDANCY_LOST = FindingKind(
    "NetBirdNetworkRedundancyLost",
    "Network",
    "network",
    lasts="15m",
    summary="Network {{ $labels.network }} has only one connected routing peer",
    description="All other routing peers of network {{ $labels.network }} are offline:"
    " there is no redundancy.",
    keep="10m",
)


RESOURCE_UNREACHABLE = FindingKind(
    "NetBirdResourceUnreachable",
    "Network resource",
    "network_resource",
    lasts="5m",
    summary="Resource {{ $labels.network_resource }} is unreachable",
    description="The network of resource {{ $labels.network_resource }} has no"
    " connected routing peer.",
    keep="10m",
    own_labels=(
        ("network_id", "object_id", "(.*)/.*"),
        ("network_resource_id", "object_id", ".*/(.*)"),
        ("network_resource", "object", "(.+)"),
    ),
    many=("{} network resources", "are unreachable"),
)


def findings(snapshot: Snapshot) -> Iterator[Finding]:
    inventory = snapshot.inventory
    routing = network_routing_peers(inventory)
    enabled_of: dict[str, list[NetworkResource]] = {}
    network_ids = network_by_resource(inventory)
    for resource in NETWORK_RESOURCES.of(inventory) or ():
        if resource.enabled and resource.id in network_ids:
            enabled_of.setdefault(network_ids[resource.id], []).append(resource)
    enabled = {r.id for r in NETWORK_RESOURCES.of(inventory) or () if r.enabled}
    routers = routers_by_network(inventory)
    for network in NETWORKS.of(inventory) or ():
        if enabled.isdisjoint(network.resources or ()):
            continue
        counts = routing[network.id]
        since = timestamp(counts.last_disconnected_at)
        if counts.connected == 1 and counts.peers > 1:
            yield snapshot.finding(
                NETWORK_REDUNDANCY_LOST, only_one(counts), network, since=since
            )
        if counts.connected:
            continue
        disabled = [r for r in routers[network.id] if not r.enabled]
        yield snapshot.finding(
            NETWORK_UNREACHABLE,
            f"cannot be reached: {why_unreachable(counts, len(disabled))}.",
            network,
            since=since,
        )
        for resource in enabled_of.get(network.id, ()):
            yield snapshot.finding(
                RESOURCE_UNREACHABLE,
                "is unreachable: its network has no connected routing peer.",
                object_id=f"{network.id}/{resource.id}",
                name=resource.name or resource.address or resource.id,
                since=since,
            )


@joined_once
def count_reachable(inventory: Inventory) -> Reach | None:
    """Count networks with enabled resources; None while a list is unknown."""
    if not inventory.records.keys() >= {*NETWORK_REACH_READS}:
        return None
    routing = network_routing_peers(inventory)
    enabled = {r.id for r in NETWORK_RESOURCES.of(inventory) or () if r.enabled}
    return reach_of(
        [
            routing[network.id]
            for network in NETWORKS.of(inventory) or ()
            if not enabled.isdisjoint(network.resources or ())
        ]
    )


NETWORK_REACH_READS = (
    "networks",
    "network_routers",
    "network_resources",
    "groups",
    "peers",
)

FINDERS = (
    Finder(
        findings,
        (NETWORK_UNREACHABLE, NETWORK_REDUNDANCY_LOST, RESOURCE_UNREACHABLE),
        NETWORK_REACH_READS,
        hidden_in_outage=True,
    ),
)

SUBJECT = Subject(
    __name__, (NETWORKS, NETWORK_ROUTERS, NETWORK_RESOURCES), FAMILIES, FINDERS
)

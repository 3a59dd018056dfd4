"""Routing peers: single peers, and the members of groups of peers.

A join may be much work: a record of a few kilobytes can name many large groups. So sets
of peers are numbers, whose union is one step of the processor for 64 peers, and there
are places to pause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from api_exporter.exposition.tally import chunks
from api_exporter.netbird.facts.members import Steps, bits
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Network, NetworkRouter, Peer, Route


class Router(Protocol):
    """A network's router, or a route: a peer, or groups of peers, that route."""

    @property
    def peer(self) -> str: ...

    @property
    def peer_groups(self) -> tuple[str, ...] | None: ...


RouterKey = tuple[str, tuple[str, ...] | None]
"""The peer and the groups of a router."""


class RoutingPeers(Struct, frozen=True):
    """Existing peers that route for something.

    Attributes:
        gone: when the last of those that are not connected went. It is looked for only
            where at most one is connected, and None where nobody knows.
    """

    peers: int
    connected: int
    gone: datetime | None = None


def routing_peers(
    groups: Iterable[Group],
    peers: Sequence[Peer],
    routers: Iterable[tuple[str, Iterable[Router]]],
) -> Steps[Mapping[str, RoutingPeers]]:
    """The routing peers of networks or routes, by their ids.

    Args:
        routers: the enabled ones of each, beside its id.
    """
    ways: dict[str, frozenset[RouterKey]] = {}
    wanted, ids = set[str](), set[str]()
    for id_, some in routers:
        mine: set[RouterKey] = set()
        for router in some:
            mine.add((router.peer, router.peer_groups))
            ids.add(router.peer)
            wanted.update(router.peer_groups or ())
            yield
        ways[id_] = frozenset(mine)
        yield
    members: dict[str, list[str]] = {}
    for group in groups:
        if group.id in wanted:
            members[group.id] = [m.id for m in group.peers or ()]
            ids.update(members[group.id])
            yield
    known: list[Peer] = []
    for some_peers in chunks(peers):
        known += [peer for peer in some_peers if peer.id in ids]
        yield
    join = yield from _joined(known, members)
    found: dict[frozenset[RouterKey], RoutingPeers] = {}
    for each in ways.values():
        if each not in found:
            found[each] = join.behind(each)
        yield
    return {id_: found[each] for id_, each in ways.items()}


class _Members(Struct, frozen=True, gc=False):
    """The members of a group, as bits, and when the last offline one went."""

    bits: int
    gone: datetime | None


def _joined(peers: Sequence[Peer], members: Mapping[str, list[str]]) -> Steps["_Join"]:
    places, offline = dict[str, int](), dict[str, datetime]()
    for some in chunks(peers):
        places.update({peer.id: len(places) + n for n, peer in enumerate(some)})
        offline.update(
            {p.id: p.last_seen for p in some if not p.connected and p.last_seen}
        )
        yield
    connected = yield from bits([p.id for p in peers if p.connected], places)
    groups: dict[str, _Members] = {}
    for id_, ids in members.items():
        gone: datetime | None = None
        for part in chunks(ids):
            times = [gone, *map(offline.get, part)]
            gone = max(filter(None, times), default=None)
            yield
        groups[id_] = _Members((yield from bits(ids, places)), gone)
    return _Join(places, offline, connected, groups)


class _Join(Struct, frozen=True):
    """Peers that may route, and the groups that are wanted.

    Attributes:
        places: of each peer, its bit.
        offline: when each peer that is not connected went, as far as that is known.
        connected: the others, as bits.
        groups: by id.
    """

    places: Mapping[str, int]
    offline: Mapping[str, datetime]
    connected: int
    groups: Mapping[str, _Members]

    def behind(self, ways: Iterable[RouterKey]) -> RoutingPeers:
        """The peers of all these, each once."""
        every = 0
        times: list[datetime | None] = []
        for peer, names in ways:
            if peer in self.places:
                every |= 1 << self.places[peer]
                times.append(self.offline.get(peer))
            for group in map(self.groups.get, set(names or ())):
                if group is not None:
                    every |= group.bits
                    times.append(group.gone)
        connected = (every & self.connected).bit_count()
        gone = max(filter(None, times), default=None) if connected <= 1 else None
        return RoutingPeers(every.bit_count(), connected, gone)


def network_routing_peers(inventory: Inventory) -> Steps[Mapping[str, RoutingPeers]]:
    """Those behind the enabled routers of each network."""
    by_id = {router.id: router for router in inventory.network_routers or ()}
    enabled = (
        (n.id, (router for router in routers_of(n, by_id) if router.enabled))
        for n in inventory.networks or ()
    )
    groups, peers = inventory.groups or (), inventory.peers or ()
    return (yield from routing_peers(groups, peers, enabled))


def route_routing_peers(inventory: Inventory) -> Steps[Mapping[str, RoutingPeers]]:
    """Those of each enabled route."""
    enabled = ((r.id, (r,)) for r in inventory.routes or () if r.enabled)
    groups, peers = inventory.groups or (), inventory.peers or ()
    return (yield from routing_peers(groups, peers, enabled))


def routers_of(
    network: Network, by_id: Mapping[str, NetworkRouter]
) -> Iterator[NetworkRouter]:
    """The routers that the network lists and that exist, each once."""
    for router_id in dict.fromkeys(network.routers or ()):
        if router_id in by_id:
            yield by_id[router_id]


def network_of(networks: Iterable[Network]) -> Steps[Mapping[str, str]]:
    """The id of each resource's network, which is the last that lists it."""
    found: dict[str, str] = {}
    for network in networks:
        found.update(dict.fromkeys(network.resources or (), network.id))
        yield
    return found


def destination(route: Route) -> str:
    """Where it leads: the address, or the domains."""
    if route.network_type == "Domain":  # the upstream sends a placeholder address
        return ",".join(sorted(route.domains or ()))
    return route.network

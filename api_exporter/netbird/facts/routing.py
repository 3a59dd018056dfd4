"""Routing peers: single peers, and the members of groups of peers.

A join may be much work: a record of a few kilobytes can name large groups many times.
So each name counts once, routers that are alike are joined once, and there are places
to pause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Protocol

from msgspec import Struct

from api_exporter.exposition.tally import AT_ONCE, chunks
from api_exporter.netbird.facts.members import Steps
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
    join = _Join()
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
    for group in groups:
        if group.id in wanted:
            join.members[group.id] = [m.id for m in group.peers or ()]
            ids.update(join.members[group.id])
            yield
    for some_peers in chunks(peers):
        join.add(peer for peer in some_peers if peer.id in ids)
        yield
    joined: dict[frozenset[RouterKey], RoutingPeers] = {}
    for each in ways.values():
        if each not in joined:
            joined[each] = yield from join.behind(each)
        yield
    return {id_: joined[each] for id_, each in ways.items()}


class _Join:
    """Which peers may route, and who is in which of the groups that are wanted."""

    def __init__(self) -> None:
        self._connected: set[str] = set()
        self._offline: dict[str, datetime | None] = {}
        self.members: dict[str, list[str]] = {}

    def add(self, peers: Iterable[Peer]) -> None:
        for peer in peers:
            if peer.connected:
                self._connected.add(peer.id)
            else:
                self._offline[peer.id] = peer.last_seen

    def behind(self, ways: Iterable[RouterKey]) -> Steps[RoutingPeers]:
        """The peers of all these, each once; each group is looked at once, too."""
        found: set[str] = set()
        named: set[str] = set()
        for peer, groups in ways:
            found.add(peer)
            for group in self.members.keys() & set(groups or ()) - named:
                named.add(group)
                found.update(self.members[group])
                yield
            yield
        connected = len(found & self._connected)
        yield
        offline = found & self._offline.keys()
        left = iter(offline if connected <= 1 else ())
        gone: datetime | None = None
        while some := list(islice(left, AT_ONCE)):
            times = [gone, *map(self._offline.__getitem__, some)]
            gone = max(filter(None, times), default=None)
            yield
        return RoutingPeers(connected + len(offline), connected, gone)


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

"""Routing peers: single peers, and the members of groups of peers.

A join may be expensive: a record of a few kilobytes can name many large groups. So a
set of peers is a number: a union takes the processor one step for 64 peers.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Protocol, TypeVar

from msgspec import Struct

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.members import PeerSets, count_below
from api_exporter.netbird.records import Peer

K = TypeVar("K", bound=Hashable)


class Router(Protocol):
    """A network's router or a route: one peer, or groups of peers."""

    @property
    def peer(self) -> str: ...

    @property
    def peer_groups(self) -> tuple[str, ...] | None: ...


RouterKey = tuple[str, tuple[str, ...] | None]
"""The peer and the groups of a router."""


class RoutingPeers(Struct, frozen=True):
    """The number of existing routing peers of a network or a route."""

    peers: int
    connected: int
    last_disconnected_at: datetime | None = None
    """None if that is unknown, or if more than one peer is connected."""


class Reach(Struct, frozen=True):
    """The number of networks or routes, and of those with a connected routing peer."""

    total: int
    reachable: int


def reach_of(routing: Collection[RoutingPeers]) -> Reach:
    return Reach(len(routing), sum(peers.connected > 0 for peers in routing))


def routing_peers(
    inventory: Inventory, routers: Iterable[tuple[K, Iterable[Router]]]
) -> Mapping[K, RoutingPeers]:
    """Return the routing peers of networks or routes, by their keys.

    Args:
        routers: the key of each network or route, and its enabled routers.
    """
    router_keys: dict[K, frozenset[RouterKey]] = {}
    group_ids, peer_ids = set[str](), set[str]()
    for key, enabled in routers:
        own_keys: set[RouterKey] = set()
        for router in enabled:
            own_keys.add((router.peer, router.peer_groups))
            peer_ids.add(router.peer)
            group_ids.update(router.peer_groups or ())
        router_keys[key] = frozenset(own_keys)
    members: dict[str, list[str]] = {}
    for group in inventory.groups or ():
        if group.id in group_ids:
            members[group.id] = [m.id for m in group.peers or ()]
            peer_ids.update(members[group.id])
    peers = [peer for peer in inventory.peers or () if peer.id in peer_ids]
    join = _Join(peers, members)
    found: dict[frozenset[RouterKey], RoutingPeers] = {}
    for keys in router_keys.values():
        if keys not in found:
            found[keys] = join.peers_of(keys)
    return {key: found[keys] for key, keys in router_keys.items()}


class _Join:
    """Peers that may route, and the groups that routers name."""

    def __init__(
        self, peers: Sequence[Peer], members: Mapping[str, Sequence[str]]
    ) -> None:
        connected = [peer.id for peer in peers if peer.connected]
        offline = {peer.id: peer.last_seen for peer in peers if not peer.connected}
        # Connected peers have the lowest places.
        places = {id_: place for place, id_ in enumerate([*connected, *offline])}
        self._connected_count = len(connected)
        self._groups, self._seen = PeerSets(places), offline
        self._groups_seen: dict[str, datetime | None] = {}
        for id_, ids in members.items():
            seen = filter(None, map(offline.get, ids))
            self._groups_seen[id_] = max(seen, default=None)
            self._groups.add(id_, ids)

    def peers_of(self, keys: Iterable[RouterKey]) -> RoutingPeers:
        peers = {peer for peer, _ in keys}
        names = {name for _, group_ids in keys for name in group_ids or ()}
        found = self._groups.union(names, peers)
        connected = count_below(found, self._connected_count)
        own, of_groups = map(self._seen.get, peers), map(self._groups_seen.get, names)
        lost_at: datetime | None = None
        if connected <= 1:
            lost_at = max(filter(None, chain(own, of_groups)), default=None)
        return RoutingPeers(found.bit_count(), connected, lost_at)


def why_unreachable(counts: RoutingPeers, disabled: int = 0) -> str:
    """Return why no routing peer is connected, as the end of a sentence."""
    if not counts.peers and disabled:
        return f"it has no enabled routing peer ({disabled:,} disabled)"
    if not counts.peers:
        return "it has no routing peer"
    if counts.peers == 1:
        return "its only routing peer is offline"
    return f"none of its {counts.peers:,} routing peers is connected"


def only_one(counts: RoutingPeers) -> str:
    """Return the message of a finding about the last connected routing peer."""
    return f"has only 1 of {counts.peers:,} routing peers connected (no redundancy)."

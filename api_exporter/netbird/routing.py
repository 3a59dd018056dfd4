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
    join = _build_join(peers, members)
    found: dict[frozenset[RouterKey], RoutingPeers] = {}
    for keys in router_keys.values():
        if keys not in found:
            found[keys] = join.peers_of(keys)
    return {key: found[keys] for key, keys in router_keys.items()}


def _build_join(peers: Sequence[Peer], members: Mapping[str, list[str]]) -> "_Join":
    # Connected peers come first: they have the lower places.
    connected = [peer.id for peer in peers if peer.connected]
    places = {id_: place for place, id_ in enumerate(connected)}
    offline_peers = [peer for peer in peers if not peer.connected]
    places.update({p.id: len(places) + n for n, p in enumerate(offline_peers)})
    offline = {p.id: p.last_seen for p in offline_peers if p.last_seen}
    groups, last_seen = PeerSets(places), dict[str, datetime | None]()
    for id_, ids in members.items():
        last_seen[id_] = max(filter(None, map(offline.get, ids)), default=None)
        groups.add(id_, ids)
    return _Join(groups, len(connected), offline, last_seen)


class _Join(Struct, frozen=True):
    """Peers that may route, and the groups that routers name.

    Attributes:
        connected: the number of connected peers, which have the lowest places.
        offline: when each other peer disconnected, as far as known.
        last_seen: when the last offline member of each group disconnected.
    """

    groups: PeerSets
    connected: int
    offline: Mapping[str, datetime]
    last_seen: Mapping[str, datetime | None]

    def peers_of(self, keys: Iterable[RouterKey]) -> RoutingPeers:
        peers = {peer for peer, _ in keys}
        names = {name for _, group_ids in keys for name in group_ids or ()}
        found = self.groups.union(names, peers)
        connected = count_below(found, self.connected)
        lost_at: datetime | None = None
        if connected <= 1:
            times = chain(map(self.offline.get, peers), map(self.last_seen.get, names))
            lost_at = max(filter(None, times), default=None)
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

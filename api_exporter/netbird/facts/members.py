"""Members of groups, and elements of other lists inside records."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from msgspec import Struct

from api_exporter.netbird.records import Group


class Element(Protocol):
    """An element with an id, which may be empty."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=Element)


def distinct(elements: Iterable[E] | None) -> Iterable[E]:
    """Return the elements of a list; of elements with the same id only the last."""
    return {
        element.id or place: element for place, element in enumerate(elements or ())
    }.values()


def named(groups: Iterable[Group] | None, names: Iterable[str]) -> list[Group]:
    """Return the groups that have one of these names or ids."""
    wanted = frozenset(names)
    return [g for g in groups or () if g.name in wanted or g.id in wanted]


def member_ids(groups: Iterable[Group]) -> set[str]:
    return {member.id for group in groups for member in group.peers or ()}


class PeerSet(Struct, frozen=True, gc=False):
    """Some peers, by their places: numbers from 0, one for each peer.

    Attributes:
        bits: a number in which the bit at each place is 1.
        places: the places themselves, if there are few; `bits` is 0 then.
    """

    bits: int
    places: Collection[int]

    def __len__(self) -> int:
        return self.bits.bit_count() + len(self.places)

    def below(self, place: int) -> int:
        """Return how many places are lower."""
        if not self.bits:
            return sum(other < place for other in self.places)
        return (self.bits & ((1 << place) - 1)).bit_count()


_SPARSE = 64
"""A set has places if it has fewer than one in this many peers, else bits. So it takes
at most eight bytes for each peer in it.
"""


class PeerSets:
    """Groups of peers, for many unions of them.

    Args:
        places: the place of each peer, by its id. Ids without a place are left out.
    """

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self._groups: dict[str, PeerSet] = {}

    def add(self, group: str, ids: Iterable[str]) -> None:
        places = [p for p in map(self._places.get, ids) if p is not None]
        self._groups[group] = self._peer_set(0, places)

    def union(self, groups: Iterable[str], peers: Iterable[str] = ()) -> PeerSet:
        """Return the members of these groups, and these peers, each once."""
        bits, own = 0, {self._places[id_] for id_ in peers if id_ in self._places}
        for group in map(self._groups.get, groups):
            if group is not None:
                bits |= group.bits
                own.update(group.places)
        return self._peer_set(bits, own)

    def _peer_set(self, bits: int, places: Collection[int]) -> PeerSet:
        if not bits and len(places) * _SPARSE < len(self._places):
            return PeerSet(0, places)
        if not places:
            return PeerSet(bits, ())
        found = bytearray(len(self._places) // 8 + 1)
        for place in places:
            found[place >> 3] |= 1 << (place & 7)
        return PeerSet(bits | int.from_bytes(found, "little"), ())

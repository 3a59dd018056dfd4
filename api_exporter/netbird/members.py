"""Members of groups, and elements of other lists inside records."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from api_exporter.netbird.records import Group


class Element(Protocol):
    """An element with an id, which may be empty."""

    @property
    def id(self) -> str: ...


class Named(Element, Protocol):
    """An element with a name."""

    @property
    def name(self) -> str: ...


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


_SPARSE = 64
"""A group has places if it has fewer than one in this many peers, else bits. So it
takes at most eight bytes for each peer in it.
"""


class PeerSets:
    """Groups of peers, for many unions of them.

    A union is a number in which the bit at the place of each peer is 1. It takes the
    processor one step for 64 peers.

    Args:
        places: the place of each peer, by its id. Ids without a place are left out.
    """

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self._groups: dict[str, int | list[int]] = {}

    def add(self, group: str, ids: Iterable[str]) -> None:
        places = [p for p in map(self._places.get, ids) if p is not None]
        is_small = len(places) * _SPARSE < len(self._places)
        self._groups[group] = places if is_small else _bits(places)

    def union(self, groups: Iterable[str], peers: Iterable[str] = ()) -> int:
        """Return the members of these groups, and these peers, as bits."""
        bits, own = 0, {self._places[id_] for id_ in peers if id_ in self._places}
        for group in groups:
            members = self._groups.get(group, 0)
            if isinstance(members, int):
                bits |= members
            else:
                own.update(members)
        return bits | _bits(own)


def _bits(places: Collection[int]) -> int:
    found = bytearray(max(places, default=0) // 8 + 1)
    for place in places:
        found[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(found, "little")


def count_below(bits: int, place: int) -> int:
    """Return how many of the peers have lower places."""
    return (bits & ((1 << place) - 1)).bit_count()

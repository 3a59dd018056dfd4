"""Members of groups, and the elements of other lists inside of records."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from api_exporter.exposition.tally import chunks
from api_exporter.netbird.records import Group, Peer

T = TypeVar("T")

Steps = Generator[None, None, T]
"""What returns it, with places to pause."""


class Element(Protocol):
    """An element with an id, which may be empty."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=Element)


def distinct(elements: Iterable[E] | None) -> Iterable[E]:
    """What a list inside of a record holds: of two with one id the last counts."""
    return {
        element.id or place: element for place, element in enumerate(elements or ())
    }.values()


def named(groups: Iterable[Group] | None, names: Collection[str]) -> list[Group]:
    """The groups that have one of these names or ids."""
    return [group for group in groups or () if group.name in names or group.id in names]


def member_ids(groups: Iterable[Group]) -> Steps[set[str]]:
    """The ids of all who are in any of these groups."""
    found: set[str] = set()
    for group in groups:
        members = group.peers or ()
        for some in chunks(members):
            found.update([m.id for m in some])
            yield
    return found


def by_id(peers: Sequence[Peer]) -> Steps[Mapping[str, Peer]]:
    found: dict[str, Peer] = {}
    for some in chunks(peers):
        found.update({peer.id: peer for peer in some})
        yield
    return found


def bits(ids: Sequence[str], places: Mapping[str, int]) -> Steps[int]:
    """A set as a number, in which the bit at the place of each id is 1.

    A union of many large sets costs little so. Ids without a place are left out.
    """
    found = bytearray(len(places) // 8 + 1)
    for some in chunks(ids):
        for place in map(places.get, some):
            if place is not None:
                found[place >> 3] |= 1 << (place & 7)
        yield
    return int.from_bytes(found, "little")

"""Memberships: the groups of each peer, as labels.

Many peers are in the same groups and share one object, so that a hundred thousand of
them leave hardly anything behind that the garbage collector would look through.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property

from api_exporter.netbird.records import Group

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class GroupList:
    """Some groups: those of `before`, and one more.

    Attributes:
        names: as a list in a label.
        ids: likewise.
    """

    def __init__(self, before: "GroupList | None" = None, last: Group | None = None):
        self._before = before
        self._last = last

    @cached_property
    def names(self) -> str:
        return listing(group.name for group in self._groups())

    @cached_property
    def ids(self) -> str:
        return listing(group.id for group in self._groups())

    def _groups(self) -> Iterator[Group]:
        some: GroupList | None = self
        while some is not None and some._last is not None:
            yield some._last
            some = some._before


NO_GROUPS = GroupList()
"""Of a peer in no group."""


def membership(
    groups: Iterable[Group], chosen: Container[str] | None
) -> Mapping[str, GroupList]:
    """The groups of each chosen peer, or of all, by the peer's id."""
    found: dict[str, GroupList] = {}
    for group in groups:
        longer: dict[GroupList, GroupList] = {}
        for member in group.peers or ():
            if chosen is None or member.id in chosen:
                before = found.get(member.id, NO_GROUPS)
                if before not in longer:
                    longer[before] = GroupList(before, group)
                found[member.id] = longer[before]
    return found


def listing(values: Iterable[str]) -> str:
    """`,a,b,`: so `.*,a,.*` finds an element wherever it stands."""
    present = sorted(set(map(line, values)) - {""})
    return f",{','.join(present)}," if present else ""


def line(text: str) -> str:
    """With a space for each control character: `.` does not match a line break."""
    return text if text.isprintable() else _CONTROL.sub(" ", text)

"""Memberships: the groups of each peer, as labels.

Peers with the same groups share one object. So even for 100,000 peers, the garbage
collector has few objects to examine.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property

from api_exporter.netbird.records import Group

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class GroupList:
    """A linked list of groups: those of `before`, and `last`.

    Attributes:
        name_list: the sorted names, as NetBird has them.
        names: a label with all names.
        ids: a label with all ids.
    """

    def __init__(self, before: "GroupList | None" = None, last: Group | None = None):
        self._before = before
        self._last = last

    @cached_property
    def name_list(self) -> tuple[str, ...]:
        return tuple(sorted({group.name for group in self._groups()} - {""}))

    @cached_property
    def names(self) -> str:
        return label_list(self.name_list)

    @cached_property
    def ids(self) -> str:
        return label_list(group.id for group in self._groups())

    def _groups(self) -> Iterator[Group]:
        groups: GroupList | None = self
        while groups is not None and groups._last is not None:
            yield groups._last
            groups = groups._before


NO_GROUPS = GroupList()


def membership(
    groups: Iterable[Group], chosen: Container[str] | None
) -> Mapping[str, GroupList]:
    """Return the groups of each chosen peer by its id; None for all peers."""
    found: dict[str, GroupList] = {}
    for group in groups:
        extended: dict[GroupList, GroupList] = {}
        for member in group.peers or ():
            if chosen is None or member.id in chosen:
                before = found.get(member.id, NO_GROUPS)
                if before not in extended:
                    extended[before] = GroupList(before, group)
                found[member.id] = extended[before]
    return found


def label_list(values: Iterable[str]) -> str:
    """Return `,a,b,`, so that `.*,a,.*` matches an element at any position."""
    present = sorted(set(map(line, values)) - {""})
    return f",{','.join(present)}," if present else ""


def line(text: str) -> str:
    """Replace control characters by spaces: `.` does not match a line break."""
    return text if text.isprintable() else _CONTROL.sub(" ", text)

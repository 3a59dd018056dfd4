"""References: ids by which records of a list name those of another; their maximum."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.exposition.per_record import Record
from api_exporter.ports import UpstreamError

Lists = Mapping[str, tuple[Any, ...] | None]
"""The records of each list in REFERENCES; None for a list that is not known."""


def own_id(record: Record) -> tuple[str, ...]:
    return (record.id,)


class Reference(Struct, frozen=True):
    """The ids by which the records of one list refer to those of another.

    Attributes:
        targets: the lists that have these ids. One of several lists has each id.
        ids: returns the ids that a record names.
        own_ids: returns the ids that a record of a target has.
        is_limited: false if the records may name any number of ids.
        resource: the list whose records name ids: `References` sets it.
    """

    targets: tuple[str, ...]
    ids: Callable[[Any], Iterable[str]]
    own_ids: Callable[[Any], Iterable[str]] = own_id
    is_limited: bool = True
    resource: str = ""


def listed(field: str) -> Callable[[Any], tuple[str, ...]]:
    """Return a function that returns the ids in a field of a record."""
    return lambda record: getattr(record, field) or ()


def routing_peer(router: Any) -> tuple[str, ...]:
    return (router.peer,) if router.peer else ()


class References(Struct, frozen=True):
    """The references of all lists.

    Attributes:
        lists: all lists that name ids or have them. Most stand behind those that they
            name.
        every: in the order of their lists.
        of: by list, the references of its own records.
        to: by list, the references to its records.
        pairs: each list that names ids, with each of its targets.
    """

    lists: tuple[str, ...]
    every: tuple[Reference, ...]
    of: Mapping[str, tuple[Reference, ...]]
    to: Mapping[str, tuple[Reference, ...]]
    pairs: frozenset[tuple[str, str]]

    def are_joined(self, resources: tuple[str, ...]) -> bool:
        """Return whether one of these lists names ids of another one of them."""
        return _are_joined(self.pairs, resources)


@cache  # each family of each page needs it
def _are_joined(pairs: frozenset[tuple[str, str]], resources: tuple[str, ...]) -> bool:
    return not pairs.isdisjoint(product(resources, resources))


def references_of(by_list: Mapping[str, Iterable[Reference]]) -> References:
    """Return all references, given those of each list."""
    named = [replace(r, resource=n) for n, some in by_list.items() for r in some]
    lists = tuple(dict.fromkeys(n for r in named for n in (*r.targets, r.resource)))
    every = tuple(sorted(named, key=lambda r: lists.index(r.resource)))
    return References(
        lists,
        every,
        MappingProxyType(
            {n: tuple(r for r in every if r.resource == n) for n in lists}
        ),
        MappingProxyType({n: tuple(r for r in every if n in r.targets) for n in lists}),
        frozenset((r.resource, target) for r in every for target in r.targets),
    )


MAX_NAMED_IDS = 1_000_000
"""The maximum number of ids that the records of one list may name, without members of
groups. The largest known network has a hundredth of it. Joins look up each id.
"""


def check_named_ids(references: Iterable[Reference], records: Sequence[Any]) -> None:
    """Raise UpstreamError if the records of a list name more ids than joins take."""
    total = sum(
        sum(1 for _ in reference.ids(record))
        for reference in references
        if reference.is_limited
        for record in records
    )
    if total > MAX_NAMED_IDS:
        message = f"the records name {total} objects; the maximum is {MAX_NAMED_IDS}"
        raise UpstreamError("too_large", message)


def check_join_size(what: str, total: int) -> None:
    """Raise UpstreamError if a join through another list looks up too many names.

    A network names routers, and routers name groups. So a few lists of moderate length
    may name very many groups.

    Args:
        what: the number's place is `{}`.
    """
    if total > MAX_NAMED_IDS:
        raise UpstreamError(
            "too_large", f"the {what.format(total)}; the maximum is {MAX_NAMED_IDS}"
        )

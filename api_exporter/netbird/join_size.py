"""How many ids joins look up: the maximum, and its checks."""

from collections.abc import Callable, Iterable
from typing import Any

from api_exporter.ports import UpstreamError

MAX_NAMED_IDS = 1_000_000
"""The maximum number of ids that the records of one list may name, without members of
groups. The largest known network has a hundredth of it. Joins look up each id.
"""


def length_of(*fields: str) -> Callable[[Any], int]:
    """Return a function that counts the ids in some fields of a record."""
    return lambda record: sum(len(getattr(record, field) or ()) for field in fields)


def check_named_ids(named_ids: Callable[[Any], int], records: Iterable[Any]) -> None:
    """Raise UpstreamError if the records of a list name more ids than joins take."""
    total = sum(map(named_ids, records))
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

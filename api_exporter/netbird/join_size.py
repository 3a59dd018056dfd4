"""How many ids joins look up: one sum for each list."""

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

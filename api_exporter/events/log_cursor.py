"""The cursor of a log, the new rows of a list, and their batches. Pure."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

from api_exporter.events.listing import Id, LogRow, RowKey

MAX_BATCH_ROWS = 100
"""Maximum rows of a batch: the cursor is saved after each batch."""

_MAX_BATCH_BYTES = 1024 * 1024
"""Maximum bytes of a batch; a longer row is a batch of its own."""


class LogCursor(Struct, Generic[Id], frozen=True, kw_only=True):
    """The position in a log up to which rows have been written."""

    @abstractmethod
    def with_(self, keys: Iterable[RowKey[Id]]) -> Self:
        """Return the cursor after rows with these keys were written, in this order."""

    @abstractmethod
    def after_loss(self, keys: Sequence[RowKey[Id]]) -> Self:
        """Return the cursor after the newest row of the last lines of a file."""


C = TypeVar("C", bound=LogCursor[Any])


class NewRows(Struct, Generic[C, Id], frozen=True):
    """The new rows of a list, and the cursors before and after them.

    Attributes:
        cursor: the cursor before the new rows.
        rows: the rows to write, in order.
        gap_reason: why rows may be missing; "" if none is missing.
        advance: returns the next cursor from the one after `rows`; None keeps this one.
        lag: age of the newest row in seconds if there are more pages, else 0.0.
        skipped: number of rows that are neither written nor counted.
    """

    cursor: C
    rows: list[LogRow[Id]]
    gap_reason: str = ""
    advance: Callable[[C], C] | None = None
    lag: float = 0.0
    skipped: int = 0


def batches(rows: Iterable[LogRow[Id]]) -> Iterator[tuple[LogRow[Id], ...]]:
    """Yield rows in batches."""
    batch: list[LogRow[Id]] = []
    size = 0
    for row in rows:
        size += len(row.raw)
        if batch and (len(batch) == MAX_BATCH_ROWS or size > _MAX_BATCH_BYTES):
            yield tuple(batch)
            batch, size = [], len(row.raw)
        batch.append(row)
    if batch:
        yield tuple(batch)

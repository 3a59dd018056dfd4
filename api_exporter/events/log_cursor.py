"""The cursor of a log, the new rows of a list, and their batches. Pure."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from msgspec import Raw, Struct

from api_exporter.events.listing import Id, LogRow, RowKey, RowList

MAX_BATCH_ROWS = 100
"""Maximum rows of a batch: the cursor is saved after each batch."""

_MAX_BATCH_BYTES = 1024 * 1024
"""Maximum bytes of a batch; a longer row is a batch of its own."""


class LogCursor(Struct, frozen=True, kw_only=True):
    """The position in a log up to which rows have been written. Each log is a class.

    Attributes:
        rows: the name of its rows in log lines.
        row: the name of one row.
    """

    rows: ClassVar[str]
    row: ClassVar[str]

    @staticmethod
    @abstractmethod
    def key(row: bytes | Raw, /) -> RowKey[Any] | None:
        """Return the key of a row or of its line, or None if it has no key."""

    @staticmethod
    @abstractmethod
    def line(row: LogRow[Any], account: str, personal: frozenset[str], /) -> bytes:
        """Return the line of a row, empty if the row is unreadable."""

    @staticmethod
    @abstractmethod
    def decode(body: bytes) -> RowList[Any]:
        """Return the rows of a body; raise UpstreamError."""

    @abstractmethod
    def new(self, rows: RowList[Any], now: int) -> "NewRows[Any]":
        """Return the new rows at a time in nanoseconds since the epoch."""

    @abstractmethod
    def with_(self, keys: Iterable[RowKey[Any]]) -> Self:
        """Return the cursor after rows with these keys were written, in this order."""

    @abstractmethod
    def after_loss(self, keys: Sequence[RowKey[Any]]) -> Self:
        """Return the cursor after the newest row of the last lines of a file."""


C = TypeVar("C", bound=LogCursor)


class NewRows(Struct, Generic[C], frozen=True):
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
    rows: list[LogRow[Any]]
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

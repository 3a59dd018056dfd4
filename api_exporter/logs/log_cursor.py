"""A log as a class: its cursor, its lines, and the new rows of a list. Pure."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self

from msgspec import Raw, Struct

from api_exporter.logs.listing import LogRow, Page, RowKey

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
    def key(row: bytes | Raw, /) -> RowKey | None:
        """Return the key of a row or of its line, or None if it has no key."""

    @staticmethod
    @abstractmethod
    def line(row: LogRow, account: str, personal: frozenset[str], /) -> bytes:
        """Return the line of a row, empty if the row is unreadable."""

    @staticmethod
    @abstractmethod
    def decode(body: bytes) -> Page:
        """Return the rows of a body; raise UpstreamError."""

    @abstractmethod
    def new(self, page: Page, now: int) -> "NewRows":
        """Return the new rows at a time in nanoseconds since the epoch."""

    @abstractmethod
    def with_(self, keys: Iterable[RowKey]) -> Self:
        """Return the cursor after rows with these keys were written, in this order."""

    @abstractmethod
    def after_loss(self, keys: Sequence[RowKey]) -> Self:
        """Return the cursor after the newest row of the last lines of a file."""


class NewRows(Struct, frozen=True):
    """The new rows of a page, and the cursors before and after them.

    Attributes:
        gap_reason: why rows may be missing; "" if none is missing.
        after: the cursor after the page; None for the one after the last row.
        lag: age of the newest row in seconds if there are more pages, else 0.0.
        skipped: number of rows that are neither written nor counted.
    """

    before: LogCursor
    rows: list[LogRow]
    gap_reason: str = ""
    after: LogCursor | None = None
    lag: float = 0.0
    skipped: int = 0


def batches(rows: Iterable[LogRow]) -> Iterator[tuple[LogRow, ...]]:
    """Yield rows in batches."""
    batch: list[LogRow] = []
    size = 0
    for row in rows:
        size += len(row.raw)
        if batch and (len(batch) == MAX_BATCH_ROWS or size > _MAX_BATCH_BYTES):
            yield tuple(batch)
            batch, size = [], len(row.raw)
        batch.append(row)
    if batch:
        yield tuple(batch)

"""The rows of a list of either log, and a log as a class: what it has written. Pure.

Ids of audit events are digits, which ascend. Rows of the access log come in pages;
their ids have no order.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import ClassVar, Self

import msgspec
from msgspec import Struct

from api_exporter.netbird.bodies import LogPage, decode_log_page
from api_exporter.netbird.elements import DECODE_ERRORS, elements

NANOSECONDS_PER_SECOND = 1_000_000_000

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)"
)


def nanoseconds(timestamp: str) -> int:
    """Return a time in nanoseconds since the epoch, or 0 if the text is not a time."""
    if (match := _TIME.fullmatch(timestamp)) is None:
        return 0
    try:
        time = msgspec.convert(match[1] + match[3], datetime)
    except msgspec.ValidationError:
        return 0
    fraction = int((match[2] or "0").ljust(9, "0"))
    return max(0, int(time.timestamp()) * NANOSECONDS_PER_SECOND + fraction)


def format_time(time: int) -> str:
    """Return a time as the NetBird API accepts it: in UTC, with a `Z`."""
    seconds, fraction = divmod(time, NANOSECONDS_PER_SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}Z"


RowKey = tuple[str, str]
"""The id of a row, and its timestamp as NetBird writes it."""


class LogRow(Struct, frozen=True, gc=False):
    """An audit event, or a request or connection of the access log.

    Attributes:
        timestamp: as NetBird writes it; empty if it is not a string.
        raw: the whole row as JSON.
    """

    id: str
    timestamp: str
    raw: msgspec.Raw

    @property
    def key(self) -> RowKey:
        return self.id, self.timestamp

    @property
    def number(self) -> int:
        """The id of an audit event."""
        return int(self.id)


_ID_DIGITS = 20
"""Ids have fewer digits: they fit into 64 bits."""

_MAX_CHARACTERS = 64
"""Maximum characters of an id of the access log, and of a stored timestamp."""


class _Head(Struct, frozen=True, gc=False):
    id: object = None
    timestamp: object = ""


_DECODER = msgspec.json.Decoder(_Head)


def event_key(text: bytes | msgspec.Raw) -> RowKey | None:
    """Return the key of an audit event, or None if its id is not a number."""
    if (head := _head(text)) is None:
        return None
    number = str(head[0])
    if not (number.isascii() and number.isdecimal() and len(number) < _ID_DIGITS):
        return None
    return number.lstrip("0") or "0", head[1]


def row_key(text: bytes | msgspec.Raw) -> RowKey | None:
    """Return the key of a row of the access log, or None without an id or a time."""
    if (head := _head(text)) is None:
        return None
    name, timestamp = head
    if not (isinstance(name, str) and 0 < len(name) <= _MAX_CHARACTERS):
        return None
    if not nanoseconds(timestamp):
        return None
    return name, timestamp


def _head(text: bytes | msgspec.Raw) -> tuple[object, str] | None:
    try:
        head = _DECODER.decode(text)
    except DECODE_ERRORS:
        return None
    timestamp = head.timestamp if isinstance(head.timestamp, str) else ""
    return head.id, timestamp[:_MAX_CHARACTERS]


class Page(Struct, frozen=True):
    """The rows of a response.

    Attributes:
        rows: audit events in the order of their ids, others in the order of the list.
        unreadable: hashes of rows without a key.
        following_count: number of rows on the following pages; 0 on the last page.
    """

    rows: list[LogRow]
    unreadable: tuple[int, ...]
    following_count: int


def decode_events(body: bytes) -> Page:
    """Return the audit events of a list; raise UpstreamError."""
    found, unreadable = _rows(
        chain.from_iterable(filter(None, elements(body))), event_key
    )
    return Page([found[number] for number in sorted(found, key=int)], unreadable, 0)


def decode_page(body: bytes) -> Page:
    """Return the rows of a page of the access log; raise UpstreamError."""
    page = decode_log_page(body)
    found, unreadable = _rows(page.data or (), row_key)
    return Page([*found.values()], unreadable, _following_count(page))


def _following_count(page: LogPage) -> int:
    size = max(0, page.page_size)
    max_rows = max(0, page.total_pages - page.page) * size
    if page.total_records is None:
        return max_rows
    return min(max_rows, max(1, page.total_records - page.page * size))


def _rows(
    raws: Iterable[msgspec.Raw], key_of: Callable[[msgspec.Raw], RowKey | None]
) -> tuple[dict[str, LogRow], tuple[int, ...]]:
    found: dict[str, LogRow] = {}
    unreadable: list[int] = []
    for raw in raws:
        known = key_of(raw)
        if known is None:
            unreadable.append(hash(bytes(raw)))
        else:
            found[known[0]] = LogRow(*known, raw)
    return found, tuple(unreadable)


MAX_BATCH_ROWS = 100
"""Maximum rows of a batch: the cursor is saved after each batch."""

_MAX_BATCH_BYTES = 1024 * 1024
"""Maximum bytes of a batch; a longer row is a batch of its own."""


class LogCursor(Struct, frozen=True, kw_only=True):
    """The position in a log up to which rows have been written. Each log is a class.

    Each class has a required field, so that another file is not an empty cursor.

    Attributes:
        rows: the name of its rows in log lines; `row` is that of one.
    """

    rows: ClassVar[str]
    row: ClassVar[str]

    @staticmethod
    @abstractmethod
    def key(row: bytes | msgspec.Raw, /) -> RowKey | None:
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

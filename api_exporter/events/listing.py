"""The rows of a list of either log, with their ids and timestamps. Pure.

Ids of audit events are ascending numbers. Rows of the access log come in pages; their
ids are texts without an order.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from api_exporter.netbird.elements import FAILURES, decoded, elements
from api_exporter.ports import UpstreamError

SECOND = 1_000_000_000
"""Nanoseconds."""

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
    return max(0, int(time.timestamp()) * SECOND + fraction)


def written(time: int) -> str:
    """Return a time as the NetBird API accepts it: in UTC, with a `Z`."""
    seconds, fraction = divmod(time, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}Z"


Id = TypeVar("Id")  # a number for audit events, a text for the access log
Key = tuple[Id, str]
"""The id of a row, and its timestamp as NetBird writes it."""


class Row(Struct, Generic[Id], frozen=True, gc=False):
    """One row of a list.

    Attributes:
        timestamp: as NetBird writes it; empty if it is not a string.
        raw: the whole row as JSON.
    """

    id: Id
    timestamp: str
    raw: msgspec.Raw

    @property
    def key(self) -> Key[Id]:
        return self.id, self.timestamp


Event = Row[int]
"""A row of the audit log."""

Request = Row[str]
"""A row of the access log: a request or a connection."""

_DIGITS = 20
"""Ids have fewer digits: they fit into 64 bits."""

_LONGEST = 64
"""Maximum characters of an id of the access log, and of a stored timestamp."""


class _Head(Struct, frozen=True, gc=False):
    id: object = None
    timestamp: object = ""


_DECODER = msgspec.json.Decoder(_Head)


def key(text: bytes | msgspec.Raw) -> Key[int] | None:
    """Return the key of an audit event, or None if its id is not a number."""
    if (head := _head(text)) is None:
        return None
    number = str(head[0])
    if not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        return None
    return int(number), head[1]


def row_key(text: bytes | msgspec.Raw) -> Key[str] | None:
    """Return the key of a row of the access log, or None without an id or a time."""
    if (head := _head(text)) is None:
        return None
    name, timestamp = head
    if not (isinstance(name, str) and 0 < len(name) <= _LONGEST):
        return None
    if not nanoseconds(timestamp):
        return None
    return name, timestamp


def _head(text: bytes | msgspec.Raw) -> tuple[object, str] | None:
    try:
        head = _DECODER.decode(text)
    except FAILURES:
        return None
    timestamp = head.timestamp if isinstance(head.timestamp, str) else ""
    return head.id, timestamp[:_LONGEST]


class Listing(Struct, Generic[Id], frozen=True):
    """The rows of a list.

    Attributes:
        rows: audit events in the order of their ids, others in the order of the list.
        unreadable: hashes of rows without a key.
        more: number of rows on the following pages; 0 on the last page.
    """

    rows: list[Row[Id]]
    unreadable: tuple[int, ...] = ()
    more: int = 0


def listed(body: bytes) -> Listing[int]:
    """Return the audit events of a list; raise UpstreamError."""
    found, unreadable = _rows(body, key)
    return Listing([found[number] for number in sorted(found)], unreadable)


class _Page(Struct, frozen=True):
    data: msgspec.Raw = msgspec.Raw(b"null")
    page: int = 1
    page_size: int = 0
    total_pages: int = 0
    total_records: int | None = None

    @property
    def behind(self) -> int:
        """The number of rows on the following pages."""
        if self.page >= self.total_pages:
            return 0
        size = max(0, self.page_size)
        most = (self.total_pages - self.page) * size
        if self.total_records is None:
            return most
        return min(most, max(1, self.total_records - self.page * size))


_PAGE = msgspec.json.Decoder(_Page)


def listed_page(body: bytes) -> Listing[str]:
    """Return the rows of a page of the access log; raise UpstreamError."""
    try:
        page = decoded(_PAGE, body, 2)
    except FAILURES:
        raise UpstreamError(
            "decode", "the response is not a page of the access log"
        ) from None
    found, unreadable = _rows(bytes(page.data), row_key)
    return Listing([*found.values()], unreadable, page.behind)


def _rows(
    body: bytes, key_of: Callable[[msgspec.Raw], Key[Id] | None]
) -> tuple[dict[Id, Row[Id]], tuple[int, ...]]:
    """Return rows by id, and the hashes of rows without a key."""
    found: dict[Id, Row[Id]] = {}
    unreadable: list[int] = []
    for raws in elements(body):
        for raw in raws or ():
            known = key_of(raw)
            if known is None:
                unreadable.append(hash(bytes(raw)))
            else:
                found[known[0]] = Row(*known, raw)
    return found, tuple(unreadable)

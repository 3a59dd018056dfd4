"""What a list of either log holds: each row as it came, and by what it is known. Pure.

Audit events are known by numbers that grow. Rows of the access log are known by texts
that tell no order, and come in pages.
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
    """Since the epoch; 0 where there is no such time."""
    if (match := _TIME.fullmatch(timestamp)) is None:
        return 0
    try:
        time = msgspec.convert(match[1] + match[3], datetime)
    except msgspec.ValidationError:
        return 0
    fraction = int((match[2] or "0").ljust(9, "0"))
    return max(0, int(time.timestamp()) * SECOND + fraction)


def written(time: int) -> str:
    """A time as the upstream takes it: it knows UTC only, and `Z` for it."""
    seconds, fraction = divmod(time, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}Z"


Id = TypeVar("Id")  # an id: of audit events a number, else a text
Key = tuple[Id, str]
"""The id of a row, and its timestamp as the upstream writes it."""


class Row(Struct, Generic[Id], frozen=True, gc=False):
    """One row of a list.

    Attributes:
        timestamp: as the upstream writes it; empty where it is no string.
        raw: the whole of it, as JSON.
    """

    id: Id
    timestamp: str
    raw: msgspec.Raw

    @property
    def key(self) -> Key[Id]:
        return self.id, self.timestamp


Event = Row[int]
"""Of the audit log."""

Request = Row[str]
"""Of the access log: a request, or a connection."""

_DIGITS = 20
"""A number that is an id has fewer: it fits into 64 bits."""

_LONGEST = 64
"""Characters that are remembered of a timestamp, and that another id may have."""


class _Head(Struct, frozen=True, gc=False):
    id: object = None
    timestamp: object = ""


_DECODER = msgspec.json.Decoder(_Head)


def key(text: bytes | msgspec.Raw) -> Key[int] | None:
    """What an audit event is known by; None where its id is no number."""
    if (head := _head(text)) is None:
        return None
    number = str(head[0])
    if not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        return None
    return int(number), head[1]


def row_key(text: bytes | msgspec.Raw) -> Key[str] | None:
    """The same of a request; None where it has no id, or no time that can be read."""
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
    """What a list holds.

    Attributes:
        rows: of audit events in the order of their ids, else as they are listed.
        unreadable: hashes of the rows without a key, or that are too long.
        more: how many rows are on the pages behind this one; 0 on the last.
    """

    rows: list[Row[Id]]
    unreadable: tuple[int, ...] = ()
    more: int = 0


def listed(body: bytes) -> Listing[int]:
    """The audit events of a list; raises UpstreamError."""
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
        """How many rows are on the pages behind this one."""
        if self.page >= self.total_pages:
            return 0
        size = max(0, self.page_size)
        most = (self.total_pages - self.page) * size
        if self.total_records is None:
            return most
        return min(most, max(1, self.total_records - self.page * size))


_PAGE = msgspec.json.Decoder(_Page)


def listed_page(body: bytes) -> Listing[str]:
    """The rows on a page of the access log; raises UpstreamError."""
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
    """By id, and the hashes of those without a key."""
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

"""The two logs that are written, and all in which they differ. Pure."""

from collections.abc import Callable
from functools import partial
from typing import Generic

from msgspec import Raw, Struct
from msgspec.structs import replace

from api_exporter.events import cursor, listing, position, telling
from api_exporter.events.choice import BATCH, C, Chosen
from api_exporter.events.cursor import Cursor
from api_exporter.events.listing import Id, Key, Listing, Row
from api_exporter.events.position import Position


class Kind(Struct, Generic[C, Id], frozen=True, kw_only=True):
    """One of the logs.

    Attributes:
        rows: its rows, in words.
        row: one of them.
        key: what a row, or the line of one, is known by.
        line: of a row.
        listed: the rows of a body.
        choose: which of these are new, at a time in nanoseconds.
        cursor: before the first row.
        tail: lines that are looked at where that is not among the newest ones.
    """

    rows: str
    row: str
    key: Callable[[bytes | Raw], Key[Id] | None]
    line: Callable[[Row[Id], str, frozenset[str]], bytes]
    listed: Callable[[bytes], Listing[Id]]
    choose: Callable[[C, Listing[Id], int], Chosen[C, Id]]
    cursor: C
    tail: int


AUDIT: Kind[Cursor, int] = Kind(
    rows="audit events",
    row="audit event",
    key=listing.key,
    line=telling.line,
    listed=listing.listed,
    choose=cursor.choose,
    cursor=Cursor(),
    tail=2 * BATCH,
)

ACCESS: Kind[Position, str] = Kind(
    rows="rows of the access log",
    row="row of the access log",
    key=listing.row_key,
    line=telling.request_line,
    listed=listing.listed_page,
    choose=position.choose,
    cursor=Position(),
    tail=100 * BATCH,
)

COUNTED = replace(ACCESS, choose=partial(position.choose, skips=True))
"""The same where no line is written: only requests of now are wanted."""

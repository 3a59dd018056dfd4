"""The two kinds of logs: audit events and the access log. Pure."""

from abc import abstractmethod
from typing import Generic

from msgspec import Raw, Struct

from api_exporter.events import cursor, listing, position, telling
from api_exporter.events.choice import BATCH, C, Chosen
from api_exporter.events.cursor import Cursor
from api_exporter.events.listing import Id, Key, Listing, Row
from api_exporter.events.position import Position


class Kind(Struct, Generic[C, Id], frozen=True, kw_only=True):
    """A kind of log.

    Attributes:
        rows: the name of its rows in log lines.
        row: the name of one row.
        first: the cursor before the first row.
        tail: number of last lines to search for a row that is not the newest.
    """

    rows: str
    row: str
    first: C
    tail: int

    @abstractmethod
    def key(self, row: bytes | Raw) -> Key[Id] | None:
        """Return the key of a row or of its line, or None if it has no key."""

    @abstractmethod
    def line(self, row: Row[Id], account: str, personal: frozenset[str]) -> bytes:
        """Return the line of a row, empty if the row is unreadable."""

    @abstractmethod
    def listed(self, body: bytes) -> Listing[Id]:
        """Return the rows of a body; raise UpstreamError."""

    @abstractmethod
    def choose(self, before: C, rows: Listing[Id], now: int, /) -> Chosen[C, Id]:
        """Return the new rows.

        Args:
            before: the cursor of the written rows.
            now: nanoseconds since the epoch.
        """


class AuditKind(Kind[Cursor, int], frozen=True):
    """The audit log."""

    rows: str = "audit events"
    row: str = "audit event"
    first: Cursor = Cursor()
    tail: int = 2 * BATCH

    def key(self, row: bytes | Raw) -> Key[int] | None:
        return listing.key(row)

    def line(self, row: Row[int], account: str, personal: frozenset[str]) -> bytes:
        return telling.line(row, account, personal)

    def listed(self, body: bytes) -> Listing[int]:
        return listing.listed(body)

    def choose(self, before: Cursor, rows: Listing[int], _: int, /) -> cursor.Told:
        return cursor.choose(before, rows)


class AccessKind(Kind[Position, str], frozen=True):
    """The access log of the reverse proxy.

    Attributes:
        skips: whether a backlog is skipped.
    """

    rows: str = "rows of the access log"
    row: str = "row of the access log"
    first: Position = Position()
    tail: int = 100 * BATCH
    skips: bool = False

    def key(self, row: bytes | Raw) -> Key[str] | None:
        return listing.row_key(row)

    def line(self, row: Row[str], account: str, personal: frozenset[str]) -> bytes:
        return telling.request_line(row, account, personal)

    def listed(self, body: bytes) -> Listing[str]:
        return listing.listed_page(body)

    def choose(
        self, before: Position, rows: Listing[str], now: int, /
    ) -> position.Read:
        return position.choose(before, rows, now, skips=self.skips)


AUDIT = AuditKind()
ACCESS = AccessKind()

COUNT_ONLY = AccessKind(skips=True)
"""The access log without lines: rows are only counted, and a backlog is skipped."""

"""The two kinds of logs: audit events and the access log. Pure."""

from abc import abstractmethod
from typing import Generic

from msgspec import Raw, Struct

from api_exporter.events import audit_cursor, lines, listing, position
from api_exporter.events.audit_cursor import AuditCursor
from api_exporter.events.listing import Id, LogRow, RowKey, RowList
from api_exporter.events.log_cursor import C, NewRows
from api_exporter.events.position import Position


class Kind(Struct, Generic[C, Id], frozen=True, kw_only=True):
    """A kind of log.

    Attributes:
        rows: the name of its rows in log lines.
        row: the name of one row.
        first: the cursor before the first row.
    """

    rows: str
    row: str
    first: C

    @abstractmethod
    def key(self, row: bytes | Raw) -> RowKey[Id] | None:
        """Return the key of a row or of its line, or None if it has no key."""

    @abstractmethod
    def line(self, row: LogRow[Id], account: str, personal: frozenset[str]) -> bytes:
        """Return the line of a row, empty if the row is unreadable."""

    @abstractmethod
    def decode(self, body: bytes) -> RowList[Id]:
        """Return the rows of a body; raise UpstreamError."""

    @abstractmethod
    def new_rows(self, before: C, rows: RowList[Id], now: int, /) -> NewRows[C, Id]:
        """Return the new rows.

        Args:
            before: the cursor of the written rows.
            now: nanoseconds since the epoch.
        """


class AuditKind(Kind[AuditCursor, int], frozen=True):
    """The audit log."""

    rows: str = "audit events"
    row: str = "audit event"
    first: AuditCursor = AuditCursor()

    def key(self, row: bytes | Raw) -> RowKey[int] | None:
        return listing.event_key(row)

    def line(self, row: LogRow[int], account: str, personal: frozenset[str]) -> bytes:
        return lines.event_line(row, account, personal)

    def decode(self, body: bytes) -> RowList[int]:
        return listing.decode_events(body)

    def new_rows(
        self, before: AuditCursor, rows: RowList[int], _: int, /
    ) -> audit_cursor.NewEvents:
        return audit_cursor.new_rows(before, rows)


class AccessKind(Kind[Position, str], frozen=True):
    """The access log of the reverse proxy."""

    rows: str = "rows of the access log"
    row: str = "row of the access log"
    first: Position = Position()
    skips_backlog: bool = False

    def key(self, row: bytes | Raw) -> RowKey[str] | None:
        return listing.row_key(row)

    def line(self, row: LogRow[str], account: str, personal: frozenset[str]) -> bytes:
        return lines.row_line(row, account, personal)

    def decode(self, body: bytes) -> RowList[str]:
        return listing.decode_page(body)

    def new_rows(
        self, before: Position, rows: RowList[str], now: int, /
    ) -> position.NewAccessRows:
        return position.new_rows(before, rows, now, skip_backlog=self.skips_backlog)


AUDIT = AuditKind()
ACCESS_LOG_KIND = AccessKind()

COUNT_ONLY = AccessKind(skips_backlog=True)
"""The access log without lines: rows are only counted, and a backlog is skipped."""

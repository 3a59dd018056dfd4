"""The position in the access log, the new rows of a page, and the next request. Pure.

Rows are sorted by time, a hundred a page. Times alone are not enough: rows of the same
time have no order, and a row may appear late. So the position holds the ids of all rows
from its start time on.

Note [Late rows]. A row appears within 30 s of its time. A page of older rows is
complete. The next request starts at the time of its newest row, because other rows may
have the same time. A page with younger rows may be incomplete, so the requests follow
the page numbers from the first such page to the last page. Then reading starts again
30 s before the newest row of that first page. In a quiet log it starts earlier, up to
ten minutes, if half a page has room for the rows since then.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from msgspec import field
from msgspec.structs import replace

from api_exporter.logs.lines import row_line
from api_exporter.logs.listing import (
    NANOSECONDS_PER_SECOND,
    LogCursor,
    NewRows,
    Page,
    RowKey,
    decode_page,
    format_time,
    nanoseconds,
    row_key,
)

MAX_DELAY = 30 * NANOSECONDS_PER_SECOND
"""Nanoseconds within which a row appears in the log."""

QUIET_MAX_DELAY = 600 * NANOSECONDS_PER_SECOND
"""The same in a quiet log: reading starts so far back if one page is enough."""

_MAX_KNOWN = 50
"""Maximum rows of a page that may have been read before."""

_SETTLED_AGE = 2 * MAX_DELAY
"""An age at which all rows have appeared, even if the proxy's clock differs."""

_MAX_SPAN = 4 * MAX_DELAY
"""Maximum time span of followed pages, which limits the ids in a position.

Beyond it reading starts again at `restart_at`: earlier rows are complete by then.
"""

MAX_AHEAD = 600 * NANOSECONDS_PER_SECOND
"""Nanoseconds: a row further in the future is not read yet."""

COUNTED_AGE = 600 * NANOSECONDS_PER_SECOND
"""The maximum age of counted rows: a backlog is not current traffic."""

_HOUR = 3600 * NANOSECONDS_PER_SECOND

_MIN_RETENTION = 24 * _HOUR
"""NetBird keeps rows at least this long: its retention is in whole days."""

PAGE_SIZE = 100
"""Rows of a page, the maximum of the NetBird API."""


class Position(LogCursor, frozen=True, kw_only=True):
    """The access log: the position in it. All times are in nanoseconds since the epoch.

    Attributes:
        start: the next request is for rows from this time on.
        page: the page number of the next request.
        restart_at: after the last page, reading starts at this time or earlier; None
            before a page with young rows.
        known: times by id, for the rows from `start` on that were read.
        complete_until: all rows up to this time were read, rounded down to an hour.
        is_lost: whether the loss of the last read rows has been noticed.
    """

    skips_backlog: ClassVar[bool] = False
    rows: ClassVar[str] = "rows of the access log"
    row: ClassVar[str] = "row of the access log"
    key = staticmethod(row_key)
    line = staticmethod(row_line)
    decode = staticmethod(decode_page)

    start: int
    page: int = 1
    restart_at: int | None = field(default=None, name="fresh")
    known: dict[str, int] = field(default_factory=dict)
    complete_until: int = field(default=0, name="complete")
    is_lost: bool = field(default=False, name="gone")

    @property
    def query(self) -> str:
        since = f"&start_date={format_time(self.start)}" if self.start else ""
        return f"sort_order=asc&page_size={PAGE_SIZE}&page={self.page}{since}"

    @property
    def newest(self) -> int:
        """The time of the newest row in `known`, or `start` without one."""
        return max(self.known.values(), default=self.start)

    def new(self, page: Page, now: int) -> NewRows:
        rows = [(nanoseconds(row.timestamp), row) for row in page.rows]
        present = [(time, row) for time, row in rows if time <= now + MAX_AHEAD]
        more = page.following_count if len(present) == len(rows) else 0
        page_end = max((time for time, _ in present), default=self.newest)
        if self.skips_backlog and more and page_end < now - COUNTED_AGE:
            passed = [row for _, row in present if row.id not in self.known]
            forward = self.starting_at(now)
            return NewRows(forward, [], skipped=len(passed) + more)
        new = [
            row
            for time, row in present
            if time >= self.start and row.id not in self.known
        ]
        before, missed = _check(self, {row.id for _, row in present}, page_end, now)
        after = before.with_(row.key for row in new)
        after = _next(after, page_end=min(page_end, now), more=bool(more), now=now)
        lag = max(0, now - page_end) / NANOSECONDS_PER_SECOND if more else 0.0
        return NewRows(before, new, missed, after, lag)

    def with_(self, keys: Iterable[RowKey]) -> "Position":
        added = {id_: nanoseconds(timestamp) for id_, timestamp in keys}
        return replace(self, known={**self.known, **added})

    def starting_at(self, start: int) -> "Position":
        """Return the position that starts at a time, or at its own start if later."""
        start = max(start, self.start)
        known = {id_: time for id_, time in self.known.items() if time >= start}
        return replace(self, start=start, page=1, restart_at=None, known=known)

    def after_loss(self, keys: Sequence[RowKey]) -> "Position":
        position = self.with_(keys)
        return position.starting_at(position.newest - MAX_DELAY)


class CountedPosition(Position, frozen=True, kw_only=True):
    """The access log without lines: rows are only counted, and a backlog is skipped."""

    skips_backlog: ClassVar[bool] = True


def _next(position: Position, *, page_end: int, more: bool, now: int) -> Position:
    """Return the position after a page; see Note [Late rows].

    Args:
        page_end: the time of the newest row of the page.
    """
    is_young = not more or page_end >= now - _SETTLED_AGE
    restart_at = position.restart_at
    if is_young and restart_at is None:
        restart_at = max(page_end - MAX_DELAY, now - _SETTLED_AGE if more else 0)
    if more and restart_at is not None and page_end - restart_at > _MAX_SPAN:
        return position.starting_at(restart_at)
    if more and (is_young or page_end <= position.start):
        return replace(position, page=position.page + 1, restart_at=restart_at)
    start = page_end if restart_at is None else min(page_end, restart_at)
    if more:
        return position.starting_at(start)
    after = position.starting_at(min(start, _earliest_start(position, page_end)))
    return replace(after, complete_until=now - now % _HOUR)


def _earliest_start(position: Position, page_end: int) -> int:
    newest = sorted(position.known.values(), reverse=True)[:_MAX_KNOWN]
    return max(
        page_end - QUIET_MAX_DELAY, newest[-1] if len(newest) == _MAX_KNOWN else 0
    )


def _check(
    position: Position, ids: set[str], page_end: int, now: int
) -> tuple[Position, str]:
    """Return the position, and why rows may be missing; "" if none is."""
    if position.page > 1 or not position.known:
        return position, ""
    newest = position.newest
    known = position.known.items()
    if not ids.isdisjoint(i for i, time in known if time >= newest - MAX_DELAY):
        return replace(position, is_lost=False), ""
    if position.is_lost or (ids and page_end < newest):
        return position, ""
    lost = replace(position, is_lost=True)
    if now - newest < _MIN_RETENTION:
        return lost, (
            "NetBird no longer lists the last rows that the exporter read, as after a"
            " restored database"
        )
    if now - position.complete_until < _MIN_RETENTION + _HOUR:
        return lost, ""
    return lost, (
        f"NetBird has deleted all rows up to {format_time(newest)}, the last row that"
        " the exporter read, and may have deleted later rows"
    )

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
from functools import partial

from msgspec import field
from msgspec.structs import replace

from api_exporter.events.choice import Chosen, LogCursor
from api_exporter.events.listing import SECOND, Key, Listing, nanoseconds, written

LATE = 30 * SECOND
"""Nanoseconds within which a row appears in the log."""

LATEST = 600 * SECOND
"""The same in a quiet log: reading starts so far back if this needs no other page."""

_ROOM = 50
"""Maximum rows of a page that may have been read before."""

_OLD = 2 * LATE
"""An age at which all rows have appeared, even if the proxy's clock differs."""

_LONGEST_RUN = 4 * LATE
"""Maximum time span of followed pages, which limits the ids in a position. Then
reading starts again at `fresh`; rows that are old by now need not be followed.
"""

AHEAD = 600 * SECOND
"""A row this far in the future is not read until its time comes."""

COUNTED = 600 * SECOND
"""The maximum age of counted rows: a backlog is not current traffic."""

_HOUR = 3600 * SECOND

_KEPT = 24 * _HOUR
"""NetBird keeps rows at least this long: its retention is in whole days."""

PAGE = 100
"""Rows of a page, the maximum of the NetBird API."""

Read = Chosen["Position", str]


class Position(LogCursor[str], frozen=True, kw_only=True):
    """The position in the access log; all times are in nanoseconds since the epoch.

    Attributes:
        start: the next request is for rows from this time on.
        page: the page number of the next request.
        fresh: reading starts again at this time or earlier after the last page; None
            before a page with young rows.
        known: times by id, for the rows from `start` on that were read.
        complete: all rows up to this time were read, rounded down to an hour.
        gone: whether a log line has said that the last read rows are missing.
    """

    start: int = 0
    page: int = 1
    fresh: int | None = None
    known: dict[str, int] = field(default_factory=dict)
    complete: int = 0
    gone: bool = False

    @property
    def query(self) -> str:
        """The query string of the next request."""
        since = f"&start_date={written(self.start)}" if self.start else ""
        return f"sort_order=asc&page_size={PAGE}&page={self.page}{since}"

    @property
    def newest(self) -> int:
        """The time of the newest row in `known`, or `start` without one."""
        return max(self.known.values(), default=self.start)

    def with_(self, keys: Iterable[Key[str]]) -> "Position":
        last, known = self.last, dict(self.known)
        for last in keys:
            known[last[0]] = nanoseconds(last[1])
        return replace(self, last=last, known=known)

    def from_(self, start: int) -> "Position":
        """Return the position that starts at a time, or at its own start if later."""
        start = max(start, self.start)
        known = {id_: time for id_, time in self.known.items() if time >= start}
        return replace(self, start=start, page=1, fresh=None, known=known)

    def after_crash(self, told: Sequence[Key[str]]) -> "Position":
        """Return the position with rows that were written after it was saved.

        Args:
            told: the keys of the last lines of the file: a batch and one more or, if
                `last` is not among these, all lines of the last minutes.
        """
        position = replace(self, page=1, fresh=None)
        if self.last in told:
            return position.with_(told[told.index(self.last) + 1 :])
        position = position.with_(told)
        if not told:
            return position
        # The position is old or missing. All rows before these lines are written.
        return position.from_(position.newest - LATE)


def choose(
    position: Position, page: Listing[str], now: int, *, skips: bool = False
) -> Read:
    """Return the new rows of a page, and the next position.

    Args:
        now: nanoseconds since the epoch.
        skips: whether a backlog is skipped.
    """
    rows = [(nanoseconds(row.timestamp), row) for row in page.rows]
    present = [(time, row) for time, row in rows if time <= now + AHEAD]
    more = page.more if len(present) == len(rows) else 0
    seen = max((time for time, _ in present), default=position.newest)
    if skips and more and seen < now - COUNTED:
        passed = [row for _, row in present if row.id not in position.known]
        forward = replace(position, last=None).from_(now)
        return Chosen(forward, [], skipped=len(passed) + more)
    new = [
        row
        for time, row in present
        if time >= position.start and row.id not in position.known
    ]
    position, missed = _checked(position, {row.id for _, row in present}, seen, now)
    then = partial(_moved, seen=min(seen, now), more=bool(more), now=now)
    lag = max(0, now - seen) / SECOND if more else 0.0
    return Chosen(position, new, missed, then, lag)


def _moved(position: Position, *, seen: int, more: bool, now: int) -> Position:
    """Return the position after a page; see Note [Late rows].

    Args:
        seen: the time of the newest row of the page.
        more: whether more pages follow.
    """
    young = not more or seen >= now - _OLD
    fresh = position.fresh
    if young and fresh is None:
        fresh = max(seen - LATE, now - _OLD if more else 0)
    if more and fresh is not None and seen - fresh > _LONGEST_RUN:
        return position.from_(fresh)
    if more and (young or seen <= position.start):
        return replace(position, page=position.page + 1, fresh=fresh)
    begin = seen if fresh is None else min(seen, fresh)
    if more:
        return position.from_(begin)
    after = position.from_(min(begin, _looked_back(position, seen)))
    return replace(after, complete=now - now % _HOUR)


def _looked_back(position: Position, seen: int) -> int:
    """Return the earliest start that leaves room for new rows on the next page."""
    newest = sorted(position.known.values(), reverse=True)[:_ROOM]
    return max(seen - LATEST, newest[-1] if len(newest) == _ROOM else 0)


def _checked(
    position: Position, ids: set[str], seen: int, now: int
) -> tuple[Position, str]:
    """Return the position, and why rows are missing if the last read rows are."""
    if position.page > 1 or not position.known:
        return position, ""
    newest = position.newest
    known = position.known.items()
    if not ids.isdisjoint(i for i, time in known if time >= newest - LATE):
        return replace(position, gone=False), ""
    if position.gone or (ids and seen < newest):
        return position, ""
    gone = replace(position, gone=True)
    if now - newest < _KEPT:
        return gone, (
            "NetBird no longer lists the last rows that the exporter read, as after a"
            " restored database"
        )
    if now - position.complete < _KEPT + _HOUR:
        return gone, ""
    return gone, (
        f"NetBird has deleted all rows up to {written(newest)}, the last row that the"
        " exporter read, and may have deleted later rows"
    )

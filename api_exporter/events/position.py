"""How far the access log has been read, which rows of a page are new, and what is asked
for next. Pure.

Rows come in the order of their times, a hundred a page. Two things keep times from
being enough: rows of one time have no order, and a row may show up late. So the ids are
remembered of all rows from the place on where reading begins again.

Note [Late rows]. A row shows up within 30 s. What is older than that when it is read is
all there is; reading goes on behind it, and begins with the newest row that was seen,
as others may have its time. From the first page on that holds younger rows the pages
are followed, as more of these may show up before them: when the end is reached, reading
begins again 30 s before the newest row of that first page. In a quiet log it begins
earlier, up to ten minutes, as long as half a page has room for the rows since then.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import field
from msgspec.structs import replace

from api_exporter.events.choice import Chosen, LogCursor
from api_exporter.events.listing import SECOND, Key, Listing, nanoseconds, written

LATE = 30 * SECOND
"""How much later than others a row may show up."""

LATEST = 600 * SECOND
"""The same in a quiet log: reading begins again so far back if that is no page more."""

_ROOM = 50
"""Rows of a page that may be known already."""

_OLD = 2 * LATE
"""An age at which all rows are there, though the proxy's clock and ours differ."""

_LONGEST_RUN = 4 * LATE
"""Of young rows, so that there are few to remember. They are read again then: older,
they need not be followed.
"""

AHEAD = 600 * SECOND
"""A row that is so far in the future is left until its time comes."""

COUNTED = 600 * SECOND
"""The age up to which rows are counted: a backlog is no traffic of now."""

_HOUR = 3600 * SECOND

_KEPT = 24 * _HOUR
"""What is younger no upstream deletes: it keeps rows for whole days."""

PAGE = 100
"""Rows a page, which is the most that the upstream gives."""

Read = Chosen["Position", str]


class Position(LogCursor[str], frozen=True, kw_only=True):
    """How far the access log has been read.

    Attributes:
        start: the time from which on rows are asked for.
        page: of these.
        fresh: where reading begins again, at the latest, when the end is reached; None
            before a page that holds young rows.
        known: the times of rows from `start` on that were read, by id.
        complete: all rows up to this time have been read, give or take an hour.
        gone: whether the upstream no longer lists what was read last, which was told.
    """

    start: int = 0
    page: int = 1
    fresh: int | None = None
    known: dict[str, int] = field(default_factory=dict)
    complete: int = 0
    gone: bool = False

    @property
    def query(self) -> str:
        """Of the page that comes next."""
        since = f"&start_date={written(self.start)}" if self.start else ""
        return f"sort_order=asc&page_size={PAGE}&page={self.page}{since}"

    @property
    def newest(self) -> int:
        """The time of the newest row that is remembered."""
        return max(self.known.values(), default=self.start)

    def with_(self, keys: Iterable[Key[str]]) -> "Position":
        last, known = self.last, dict(self.known)
        for last in keys:
            known[last[0]] = nanoseconds(last[1])
        return replace(self, last=last, known=known)

    def from_(self, start: int) -> "Position":
        """Reading begins again there, and never before."""
        start = max(start, self.start)
        known = {id_: time for id_, time in self.known.items() if time >= start}
        return replace(self, start=start, page=1, fresh=None, known=known)

    def after_crash(self, told: Sequence[Key[str]]) -> "Position":
        """The same with what was written before the position could be.

        Args:
            told: the last lines of the file: one more than are written at once or,
                where `last` is not among these, all of the last minutes.
        """
        position = replace(self, page=1, fresh=None)
        if self.last in told:
            return position.with_(told[told.index(self.last) + 1 :])
        position = position.with_(told)
        if not told:
            return position
        # It is an old one, or there was none. What the file had before was written.
        return position.from_(position.newest - LATE)


def choose(
    position: Position, page: Listing[str], now: int, *, skips: bool = False
) -> Read:
    """Which rows of a page are new, and what is asked for next.

    Args:
        skips: whether a backlog is passed over.
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
    """See Note [Late rows].

    Args:
        seen: the time of the newest row of the page.
        more: whether there are pages behind it.
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
    """As far back as the rows of the next request leave room for new ones."""
    newest = sorted(position.known.values(), reverse=True)[:_ROOM]
    return max(seen - LATEST, newest[-1] if len(newest) == _ROOM else 0)


def _checked(
    position: Position, ids: set[str], seen: int, now: int
) -> tuple[Position, str]:
    """Whether what was read last is still there; else what follows from that."""
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

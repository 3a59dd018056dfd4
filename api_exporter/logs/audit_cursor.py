"""The written audit events, and the new events of a list. Pure.

Ids ascend, but an event may appear after one with a higher id: NetBird writes events
concurrently. So the cursor holds the newest ids one by one, each with its timestamp.
The timestamps also show that ids have started again: a restored database gives a known
id to another event.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import ClassVar

from msgspec import field
from msgspec.structs import replace

from api_exporter.logs.lines import event_line
from api_exporter.logs.listing import (
    NANOSECONDS_PER_SECOND,
    LogCursor,
    LogRow,
    NewRows,
    Page,
    RowKey,
    decode_events,
    event_key,
    nanoseconds,
)

MAX_IDS = 1000
"""Number of ids in a cursor. An event below all of them counts as written."""

MAX_EVENTS = 10_000
"""Maximum events of a list. The NetBird API has no request for earlier events."""


class AuditCursor(LogCursor, frozen=True, kw_only=True):
    """The audit log: its written events.

    Attributes:
        newest: the time of the newest event, in seconds since the epoch.
        floor: ids up to this one count as written.
        recent: timestamps by id, for the highest ids.
        former: timestamps by id from before a gap, or before ids started again.
    """

    rows: ClassVar[str] = "audit events"
    row: ClassVar[str] = "audit event"
    key = staticmethod(event_key)
    line = staticmethod(event_line)
    decode = staticmethod(decode_events)

    newest: float = 0.0
    floor: int = -1
    recent: dict[str, str]
    former: dict[str, str] = field(default_factory=dict)

    def new(self, page: Page, _: int) -> NewRows:
        events, recent = page.rows, self.recent
        if not events or not recent:
            return NewRows(self, [e for e in events if not _has(self.former, e)])
        highest = max(map(int, recent))
        if events[0].number > highest:
            if len(events) + len(page.unreadable) < MAX_EVENTS:
                return NewRows(self, events)
            return NewRows(
                replace(self, recent={}, former=recent),
                events,
                f"NetBird lists only the newest {len(events)} events. The last written"
                f" event is {highest}: later events before {events[0].number} are lost",
            )
        known = [event for event in events if event.id in recent]
        is_continued = known and all(_has(recent, e) for e in known)
        if events[-1].number < highest or not is_continued:
            return _after_restart(self, events, highest)
        start = bisect_right(events, self.floor, key=attrgetter("number"))
        return NewRows(
            self,
            [
                event
                for event in events[start:]
                if event.id not in recent and not _has(self.former, event)
            ],
        )

    def with_(self, keys: Iterable[RowKey]) -> "AuditCursor":
        newest, recent = self.newest, dict(self.recent)
        for id_, timestamp in keys:
            recent[id_] = timestamp
            newest = max(newest, _seconds(timestamp))
        highest = sorted(recent, key=int)[-MAX_IDS:]
        floor = self.floor if len(recent) < MAX_IDS else int(highest[0])
        return replace(
            self, newest=newest, floor=floor, recent={n: recent[n] for n in highest}
        )

    def after_loss(self, keys: Sequence[RowKey]) -> "AuditCursor":
        cursor = self.with_(keys)
        return replace(cursor, floor=max(map(int, cursor.recent), default=-1))


def _after_restart(cursor: AuditCursor, events: list[LogRow], highest: int) -> NewRows:
    before = {**cursor.former, **cursor.recent}
    new = [
        event
        for event in events
        if _seconds(event.timestamp) > cursor.newest and not _has(before, event)
    ]
    ids = {event.id for event in new}
    old = [event for event in events if event.id not in ids][-MAX_IDS:]
    return NewRows(
        replace(
            cursor,
            floor=old[0].number if len(old) == MAX_IDS else -1,
            recent={e.id: e.timestamp for e in old},
            former=cursor.recent,
        ),
        new,
        "the ids have started again, as after a restored database: the last written id"
        f" is {highest}, the last listed id is {events[-1].number}",
    )


def _has(keys: dict[str, str], event: LogRow) -> bool:
    return keys.get(event.id) == event.timestamp


def _seconds(timestamp: str) -> float:
    return nanoseconds(timestamp) / NANOSECONDS_PER_SECOND

"""Which audit events have been written, and which of a list are new. Pure.

Ids grow, but an event may show up after one with a higher id: both are written at the
same time, and the later one was quicker. So the newest ids are remembered one by one,
each with its timestamp. That also tells that ids have begun again: a database that was
restored gives an id that we know to another event.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import field
from msgspec.structs import replace

from api_exporter.events.choice import BATCH, Chosen, LogCursor
from api_exporter.events.listing import Event, Key, Listing

REMEMBERED = 1000
"""Ids: an event that comes after so many with higher ids is taken for an old one."""

LISTED = 10_000
"""Events of a list, at most. The upstream has no way to ask for those before them."""

Told = Chosen["Cursor", int]


class Cursor(LogCursor[int], frozen=True, kw_only=True):
    """What has been written.

    Attributes:
        newest: the newest time of all events, in seconds since the epoch.
        floor: ids up to this one count as written.
        recent: of the highest ids, their timestamps.
        former: the same from before there was a gap, or before ids began again.
    """

    newest: float = 0.0
    floor: int = -1
    recent: dict[int, str] = field(default_factory=dict)
    former: dict[int, str] = field(default_factory=dict)

    def with_(self, keys: Iterable[Key[int]]) -> "Cursor":
        last, newest, recent = self.last, self.newest, dict(self.recent)
        for last in keys:
            number, timestamp = last
            recent[number] = timestamp
            newest = max(newest, moment(timestamp))
        highest = sorted(recent)[-REMEMBERED:]
        floor = self.floor if len(recent) < REMEMBERED else highest[0]
        return replace(
            self,
            last=last,
            newest=newest,
            floor=floor,
            recent={n: recent[n] for n in highest},
        )

    def after_crash(self, told: Sequence[Key[int]]) -> "Cursor":
        """The same with what was written before the cursor could be.

        Args:
            told: the last lines of the file, more than are written at once.
        """
        if self.last in told:
            return self.with_(told[told.index(self.last) + 1 :])
        cursor = self.with_(told)
        if not told or (self.last is not None and len(told) <= BATCH):
            return cursor
        # It is an old one, or there was none. What stands before these lines, in this
        # file or in one that was moved, was written. Its ids are below the highest of
        # the first lines; a line among these may be of an event that came late.
        first = told[: (len(told) + 1) // 2]
        return replace(cursor, floor=max(cursor.floor, *(n for n, _ in first)))


def choose(cursor: Cursor, listing: Listing[int]) -> Told:
    """Return which events of a whole list are new."""
    events = listing.rows
    if not events or not cursor.recent:
        return Chosen(cursor, [e for e in events if not _told(cursor.former, e)])
    recent = cursor.recent
    highest = max(recent)
    if events[0].id > highest:
        if len(events) < LISTED:
            return Chosen(cursor, events)
        return Chosen(
            replace(cursor, recent={}, former=recent),
            events,
            f"NetBird lists only the newest {len(events)} events. The last written"
            f" event is {highest}: later events before {events[0].id} are lost",
        )
    known = [event for event in events if event.id in recent]
    if events[-1].id < highest or not all(_told(recent, e) for e in known) or not known:
        return _anew(cursor, events, highest)
    return Chosen(
        cursor,
        [
            event
            for event in events
            if event.id > cursor.floor
            and event.id not in recent
            and not _told(cursor.former, event)
        ],
    )


def _anew(cursor: Cursor, events: list[Event], highest: int) -> Told:
    """Ids have begun again. What is later than all that was written is new."""
    before = {**cursor.former, **cursor.recent}
    new = [
        event
        for event in events
        if moment(event.timestamp) > cursor.newest and not _told(before, event)
    ]
    ids = {event.id for event in new}
    old = [event for event in events if event.id not in ids][-REMEMBERED:]
    return Chosen(
        replace(
            cursor,
            floor=old[0].id if len(old) == REMEMBERED else -1,
            recent={e.id: e.timestamp for e in old},
            former=cursor.recent,
        ),
        new,
        "the ids have started again, as after a restored database: the last written id"
        f" is {highest}, the last listed id is {events[-1].id}",
    )


def _told(keys: dict[int, str], event: Event) -> bool:
    return keys.get(event.id) == event.timestamp


def moment(timestamp: str) -> float:
    """Seconds since the epoch; 0 where there is no such time."""
    try:
        time = msgspec.convert(timestamp, datetime)
    except msgspec.ValidationError:
        return 0.0
    return max(0.0, (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())

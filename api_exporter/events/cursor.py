"""The written audit events, and the new events of a list. Pure.

Ids ascend, but an event may appear after one with a higher id: NetBird writes events
concurrently. So the cursor holds the newest ids one by one, each with its timestamp.
The timestamps also show that ids have started again: a restored database gives a known
id to another event.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import field
from msgspec.structs import replace

from api_exporter.events.choice import BATCH, Chosen, LogCursor
from api_exporter.events.listing import Event, Key, Listing

REMEMBERED = 1000
"""Number of ids in a cursor. An event below all of them counts as written."""

LISTED = 10_000
"""Maximum events of a list. The NetBird API has no request for earlier events."""

Told = Chosen["Cursor", int]


class Cursor(LogCursor[int], frozen=True, kw_only=True):
    """The written audit events.

    Attributes:
        newest: the time of the newest event, in seconds since the epoch.
        floor: ids up to this one count as written.
        recent: timestamps by id, for the highest ids.
        former: timestamps by id from before a gap, or before ids started again.
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
        """Return the cursor with events that were written after it was saved.

        Args:
            told: the keys of the last lines of the file, more than one batch.
        """
        if self.last in told:
            return self.with_(told[told.index(self.last) + 1 :])
        cursor = self.with_(told)
        if not told or (self.last is not None and len(told) <= BATCH):
            return cursor
        # The cursor is old or missing. All events before these lines are written, in
        # this file or in a moved one. Their ids are below the highest id of the first
        # half; a late event may be among the lines.
        first = told[: (len(told) + 1) // 2]
        return replace(cursor, floor=max(cursor.floor, *(n for n, _ in first)))


def choose(cursor: Cursor, listing: Listing[int]) -> Told:
    """Return the new events of a whole list."""
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
    """Return the later events as new: the ids have started again."""
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
    """Return a time in seconds since the epoch, or 0 if the text is not a time."""
    try:
        time = msgspec.convert(timestamp, datetime)
    except msgspec.ValidationError:
        return 0.0
    return max(0.0, (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())

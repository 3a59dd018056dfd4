"""What a list of audit events holds: each as it came, and by what it is known. Pure."""

from collections.abc import Generator

import msgspec
from msgspec import Struct

from api_exporter.netbird.elements import FAILURES, elements

Key = tuple[int, str]
"""The id of an event, and its timestamp as the upstream writes it."""

_SLICE = 256 * 1024
"""Bytes read between two places to pause: about a millisecond's work."""

_EACH = 1024
"""What an event costs beside its bytes, in bytes."""


class Event(Struct, frozen=True, gc=False):
    """One event of the list.

    Attributes:
        timestamp: as the upstream writes it; empty where it is no string.
        raw: the whole of it, as JSON.
    """

    id: int
    timestamp: str
    raw: msgspec.Raw


_DIGITS = 20
"""An id has fewer: it fits into 64 bits."""

_LONGEST_TIMESTAMP = 64
"""Characters that are remembered of one."""


class _Head(Struct, frozen=True, gc=False):
    id: object
    timestamp: object = ""


_DECODER = msgspec.json.Decoder(_Head)


def key(text: bytes | msgspec.Raw) -> Key | None:
    """What an event is known by; None where its id is no number."""
    try:
        head = _DECODER.decode(text)
    except FAILURES:
        return None
    number = str(head.id)
    if not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        return None
    timestamp = head.timestamp if isinstance(head.timestamp, str) else ""
    return int(number), timestamp[:_LONGEST_TIMESTAMP]


class EventList(Struct, frozen=True):
    """What a list holds.

    Attributes:
        events: in the order of their ids.
        unreadable: how many more there are that have no number for an id, or are too
            long: they cannot be told apart.
    """

    events: list[Event]
    unreadable: int = 0


def listed(body: bytes) -> Generator[None, None, EventList]:
    """The events of a list; raises UpstreamError."""
    found: dict[int, Event] = {}
    work = unreadable = 0
    for raws in elements(body):
        yield
        for raw in raws or ():
            work += len(raw) + _EACH
            if work > _SLICE:
                work = 0
                yield
            known = key(raw)
            if known is None:
                unreadable += 1
            else:
                found[known[0]] = Event(*known, raw)
    yield
    return EventList([found[number] for number in sorted(found)], unreadable)

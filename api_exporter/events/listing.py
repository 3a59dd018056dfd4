"""What a list of audit events holds: each as it came, and by what it is known. Pure."""

from collections.abc import Generator

import msgspec
from msgspec import Struct

from api_exporter.netbird.elements import FAILURES, elements

_SLICE = 256 * 1024
"""Bytes read between two places to pause: about a millisecond's work."""

_EACH = 1024
"""What an event costs beside its bytes, in bytes."""


class Event(Struct, frozen=True, gc=False):
    """One event of the list.

    Attributes:
        timestamp: as the upstream writes it.
        raw: the whole of it, as JSON.
    """

    id: int
    timestamp: str
    raw: msgspec.Raw


class _Head(Struct, frozen=True, gc=False):
    id: str
    timestamp: str = ""


_DECODER = msgspec.json.Decoder(_Head)


def listed(body: bytes) -> Generator[None, None, list[Event]]:
    """The events in the order of their ids; raises UpstreamError.

    What has no number for an id cannot be told apart, and is left out.
    """
    found: dict[int, Event] = {}
    work = 0
    for raws in elements(body):
        yield
        for raw in raws or ():
            work += len(raw) + _EACH
            if work > _SLICE:
                work = 0
                yield
            try:
                head = _DECODER.decode(raw)
            except FAILURES:
                continue
            if head.id.isascii() and head.id.isdecimal() and len(head.id) < 20:
                number = int(head.id)
                found[number] = Event(number, head.timestamp, raw)
    yield
    return [found[number] for number in sorted(found)]

"""Audit events as NetBird lists them."""

import json
import resource
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from api_exporter.logs.listing import LogRow, Page, RowKey, decode_events


def timestamp(number: int, era: int = 0) -> str:
    """Return the time of an event: a second for each number, an hour for each era."""
    return f"2026-11-21T{19 + era}:{number // 60 % 60:02}:{number % 60:02}.006079808Z"


def body(numbers: Iterable[int], era: int = 0) -> bytes:
    """Return a list of events, the newest first."""
    return json.dumps(
        [
            {
                "activity": "Group created",
                "activity_code": "group.add",
                "id": str(number),
                "initiator_id": "auth0|7001",
                "initiator_name": "Åse Berg",
                "initiator_email": "ase.berg@example.no",
                "meta": {"name": f"group {number}"},
                "target_id": f"g{number}",
                "timestamp": timestamp(number, era),
            }
            for number in sorted(numbers, reverse=True)
        ]
    ).encode()


def listing(text: bytes) -> Page:
    return decode_events(text)


def finish(text: bytes) -> list[LogRow]:
    return listing(text).rows


def events(numbers: Iterable[int], era: int = 0) -> list[LogRow]:
    return finish(body(numbers, era))


def keys(numbers: Iterable[int], era: int = 0) -> list[RowKey]:
    return [(str(number), timestamp(number, era)) for number in numbers]


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Limit the size of files, as on a full disk. Nothing may log meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

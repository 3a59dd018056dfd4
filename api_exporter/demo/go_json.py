"""JSON as the upstream's server writes it: compact, sorted by key, HTML escaped."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timezone
from itertools import islice
from typing import Any

import msgspec

Record = dict[str, Any]

RECORDS_AT_ONCE = 100
"""How many records make a piece of a body: about a millisecond's work at most."""


def encode(value: object) -> bytes:
    """One line as Go's encoder writes it, without the line break at its end."""
    text = msgspec.json.encode(value, order="sorted")
    return (
        text.replace(b"&", b"\\u0026")
        .replace(b"<", b"\\u003c")
        .replace(b">", b"\\u003e")
    )


def array(records: Iterable[bytes]) -> Iterator[bytes]:
    """The encoded records as a JSON array, in pieces."""
    records = iter(records)
    opening = b"["
    while batch := tuple(islice(records, RECORDS_AT_ONCE)):
        yield opening + b",".join(batch)
        opening = b","
    yield b"]" if opening == b"," else b"[]"


def rfc3339(seconds: int, fraction: str = "", zone: timezone = UTC) -> str:
    """An instant, given in seconds since the epoch.

    `fraction` is what follows the whole seconds: a dot and digits, or nothing.
    """
    text = datetime.fromtimestamp(seconds, zone).isoformat()
    return f"{text[:19]}{fraction}{'Z' if zone is UTC else text[19:]}"


def xid(prefix: str, number: int) -> str:
    """An id of the upstream's kind: 20 characters, the first of them for the kind."""
    return f"{prefix}{number:0{20 - len(prefix)}x}"

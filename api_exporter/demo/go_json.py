"""JSON as NetBird writes it: compact, sorted by key, with HTML escapes."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timezone
from itertools import islice
from typing import Any

import msgspec

Record = dict[str, Any]

PIECE_RECORDS = 100
"""Records of a piece of a body: at most about a millisecond of work."""


def encode(value: object) -> bytes:
    """Return JSON as Go's encoder writes it, without the final line break."""
    text = msgspec.json.encode(value, order="sorted")
    return (
        text.replace(b"&", b"\\u0026")
        .replace(b"<", b"\\u003c")
        .replace(b">", b"\\u003e")
    )


def array(records: Iterable[bytes]) -> Iterator[bytes]:
    """Yield encoded records as a JSON array, in pieces."""
    records = iter(records)
    opening = b"["
    while batch := tuple(islice(records, PIECE_RECORDS)):
        yield opening + b",".join(batch)
        opening = b","
    yield b"]" if opening == b"," else b"[]"


def rfc3339(seconds: int, fraction: str = "", zone: timezone = UTC) -> str:
    """Return a time in seconds since the epoch as text.

    `fraction` follows the whole seconds: a dot and digits, or nothing.
    """
    text = datetime.fromtimestamp(seconds, zone).isoformat()
    return f"{text[:19]}{fraction}{'Z' if zone is UTC else text[19:]}"


def xid(prefix: str, number: int) -> str:
    """Return an id as NetBird makes it: 20 characters that begin with a prefix."""
    return f"{prefix}{number:0{20 - len(prefix)}x}"

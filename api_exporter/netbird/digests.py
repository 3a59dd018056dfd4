"""Two digests of a body: of all its bytes, and of those that say something.

`last_seen` says nothing about a connected peer, and may move with the clock. After a
body with the records of the one before, the next is not decoded if only such times
have moved.
"""

import re
from collections.abc import Hashable, Iterator

from api_exporter.netbird.record_cache import CONNECTED, fingerprint

_DIGESTED_AT_ONCE = 2 * 1024 * 1024
"""Bytes that one call hashes: it holds the interpreter for two milliseconds."""

_FIRST_KEY = re.compile(rb'\[(\{"\w+":)')
"""With this key each record of a list of Go's encoder begins."""

_LAST_SEEN = b'"last_seen":"'

Digest = tuple[Hashable, ...]


def digest(body: bytes) -> Digest:
    view = memoryview(body)
    return tuple(
        fingerprint(view[start : start + _DIGESTED_AT_ONCE])
        for start in range(0, len(body), _DIGESTED_AT_ONCE)
    )


def digest_without_times(body: bytes) -> Digest:
    """Return a digest that `last_seen` of connected records does not change."""
    first_key = _FIRST_KEY.match(body)
    if first_key is None:
        return digest(body)
    return tuple(
        fingerprint(_without_times(part, first_key[1]))
        for part in _parts(body, first_key[1])
    )


def _parts(body: bytes, first_key: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(body):
        most = min(len(body), start + 2 * _DIGESTED_AT_ONCE)  # for a body of one record
        end = body.find(first_key, start + _DIGESTED_AT_ONCE, most)
        end = most if end < 0 else end
        yield body[start:end]
        start = end


def _without_times(part: bytes, first_key: bytes) -> bytes:
    """Remove the times of records that are connected according to an earlier field."""
    pieces = part.split(_LAST_SEEN)
    for number in range(1, len(pieces)):
        before, after = pieces[number - 1], pieces[number]
        begin = before.rfind(first_key)
        if begin >= 0 and before.find(CONNECTED, begin) >= 0:
            pieces[number] = after[after.find(b'"') :]
    return _LAST_SEEN.join(pieces)

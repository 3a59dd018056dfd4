"""A cache of decoded records by their bytes, and digests of bodies.

`last_seen` says nothing about a connected peer, and may move with the clock. After a
body with the records of the one before, the next is not decoded if only such times
have moved.
"""

import os
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType

import msgspec
from msgspec import Struct

_SAMPLED_LENGTHS = 16
"""A record is always looked up if its length is a multiple of this."""

_LOOKUPS_PER_HIT = 3
"""Look-ups for each recognized record: a look-up costs a third of decoding."""

_FREE_LOOKUPS = 32
"""Look-ups that are made even if no record is recognized."""

CONNECTED = b'"connected":true'
_LAST_SEEN = re.compile(rb'"last_seen":"[^"]*"')
"""A field of peers that says nothing about a connected one. It may move with the clock.

Both are keys in the form of Go's encoder, which escapes a quote inside a text.
"""

KnownRecords = Mapping[Hashable, Struct]
"""Records by the fingerprint of the bytes that they were decoded from."""

NO_RECORDS: KnownRecords = MappingProxyType({})


def fingerprint_function(
    seed: str | None, *, randomized: bool
) -> Callable[[bytes], Hashable]:
    """Return Python's own hash, the quickest, if its key is secret, else SHA-256.

    So no attacker can find other bytes with the same fingerprint.

    Args:
        seed: PYTHONHASHSEED. Python calls its hash randomized with any seed but 0.
        randomized: true if Python calls its hash randomized.
    """
    if randomized and seed in {None, "", "random"}:
        return hash
    return lambda text: sha256(text).digest()


fingerprint = fingerprint_function(
    os.environ.get("PYTHONHASHSEED"), randomized=bool(sys.flags.hash_randomization)
)


class RecordCache:
    """A look-up of the records of one body among those of the previous body.

    If hardly any record is recognized, only a sample is looked up. Every peer holds the
    sizes of its groups, so all peers differ when these sizes change. Some bodies later
    most are recognized again, except records of one length in a random order.

    Attributes:
        learned: records for the next body; all of them while few records change.
    """

    def __init__(self, before: KnownRecords) -> None:
        self.learned: dict[Hashable, Struct] = {}
        self._before = before
        self._wasted_lookups = -_FREE_LOOKUPS
        self._digest: Hashable | None = None

    def find(self, raw: msgspec.Raw) -> Struct | None:
        """Return the record that was decoded from the same bytes, or None.

        The bytes of `last_seen` do not count if the record is connected.
        """
        self._digest = None
        if self._wasted_lookups > 0 and len(raw) % _SAMPLED_LENGTHS:
            return None
        text = bytes(raw)
        if CONNECTED in text:
            text = _LAST_SEEN.sub(b"", text, 1)
        self._digest = fingerprint(text)
        found = self._before.get(self._digest)
        self._wasted_lookups += 1 if found is None else 1 - _LOOKUPS_PER_HIT
        return found

    def learn(self, record: Struct, *, kept: bool) -> None:
        """Store the record of the bytes that `find` got last, if the record is kept."""
        if kept and self._digest is not None:
            self.learned[self._digest] = record


_DIGESTED_AT_ONCE = 2 * 1024 * 1024
"""Bytes that one call hashes: it holds the interpreter for two milliseconds."""

_FIRST_KEY = re.compile(rb'\[(\{"\w+":)')
"""With this key each record of a list of Go's encoder begins."""

_LAST_SEEN_KEY = b'"last_seen":"'

Digest = tuple[Hashable, ...]


def digest(body: bytes) -> Digest:
    # Copies: the hash of a memoryview's part first hashes the whole object.
    return tuple(
        fingerprint(body[start : start + _DIGESTED_AT_ONCE])
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
    pieces = part.split(_LAST_SEEN_KEY)
    for number in range(1, len(pieces)):
        before, after = pieces[number - 1], pieces[number]
        begin = before.rfind(first_key)
        if begin >= 0 and before.find(CONNECTED, begin) >= 0:
            pieces[number] = after[after.find(b'"') :]
    return _LAST_SEEN_KEY.join(pieces)

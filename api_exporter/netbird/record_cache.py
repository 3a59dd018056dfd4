"""A cache of decoded records, by their bytes."""

import os
import sys
from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from types import MappingProxyType

import msgspec
from msgspec import Struct

_SAMPLE = 16
"""Of so many records one, by its length, is looked up always."""

_WORTH = 3
"""Records that are looked up for each that is recognized: to look costs a third of what
decoding does."""

_TRIES = 32
"""Records that are looked up whether any is recognized or not."""

KnownRecords = Mapping[Hashable, Struct]
"""Records by the fingerprint of the bytes that they were decoded from."""

NO_RECORDS: KnownRecords = MappingProxyType({})


Fingerprint = Callable[[bytes | memoryview], Hashable]
"""The same for the same bytes, and nobody can make other bytes of the same."""


def fingerprint_function(seed: str | None, *, randomized: bool) -> Fingerprint:
    """Python's own hash is the quickest, as long as nobody else knows its key.

    Args:
        seed: PYTHONHASHSEED. Python calls its hash randomized with any seed but 0.
        randomized: whether Python does.
    """
    if randomized and seed in {None, "", "random"}:
        return hash
    return lambda text: sha256(text).digest()


fingerprint = fingerprint_function(
    os.environ.get("PYTHONHASHSEED"), randomized=bool(sys.flags.hash_randomization)
)
"""What bodies and records are recognized by in this process."""


class RecordCache:
    """Looks up the records of one body among those of the body before.

    Where hardly any is recognized it looks at a sample: groups' sizes stand in every
    peer, and when they move all peers differ. Then it takes some bodies until it knows
    them again; where most records have one length and no order, it never does.

    Attributes:
        now: for the next body. It holds all records while few change.
    """

    def __init__(self, before: KnownRecords) -> None:
        self.now: dict[Hashable, Struct] = {}
        self._before = before
        self._vain = -_TRIES
        self._digest: Hashable | None = None

    def find(self, raw: msgspec.Raw) -> Struct | None:
        """The record that was decoded from the same bytes, if it is known."""
        self._digest = None
        if self._vain > 0 and len(raw) % _SAMPLE:
            return None
        self._digest = fingerprint(bytes(raw))
        found = self._before.get(self._digest)
        self._vain += 1 if found is None else 1 - _WORTH
        return found

    def learn(self, record: Struct, *, kept: bool = True) -> None:
        """What the bytes that were looked for last are; not of what is left out."""
        if kept and self._digest is not None:
            self.now[self._digest] = record

"""Records that need no decoding, because their bytes are those of another one."""

from collections.abc import Mapping
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

Recognized = Mapping[int, Struct]
"""Records by the hash of the bytes that they were decoded from."""

NOTHING: Recognized = MappingProxyType({})


class Recognizer:
    """Looks up the records of one body among those of the body before.

    Where hardly any is recognized it looks at a sample: groups' sizes stand in every
    peer, and when they move all peers differ. Then it takes some bodies until it knows
    them again; where most records have one length and no order, it never does.

    Attributes:
        now: for the next body. It holds all records while few change.
    """

    def __init__(self, before: Recognized) -> None:
        self.now: dict[int, Struct] = {}
        self._before = before
        self._vain = -_TRIES
        self._digest: int | None = None

    def find(self, raw: msgspec.Raw) -> Struct | None:
        """The record that was decoded from the same bytes, if it is known."""
        self._digest = None
        if self._vain > 0 and len(raw) % _SAMPLE:
            return None
        # Python's own hash has a key that nobody else knows, and is the quickest.
        self._digest = hash(bytes(raw))
        found = self._before.get(self._digest)
        self._vain += 1 if found is None else 1 - _WORTH
        return found

    def learn(self, record: Struct) -> None:
        """What the bytes that were looked for last are."""
        if self._digest is not None:
            self.now[self._digest] = record

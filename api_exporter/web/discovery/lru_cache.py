"""An LRU cache of the answers of service discovery."""

from collections.abc import Hashable

from api_exporter.exposition.pages import Payload

MOST = 32
"""Answers."""

MOST_BYTES = 64 * 1024 * 1024
"""Of all of them together."""

Key = tuple[Hashable, Hashable]
"""Of which account, and what was asked."""

Edition = tuple[object, ...]
"""Differs from all others once what an answer was made of has changed."""


class LRUCache:
    """The answers of all accounts; those that were asked for last stay."""

    def __init__(self) -> None:
        self._answers: dict[Key, tuple[Edition, Payload]] = {}

    def get(self, key: Key, edition: Edition) -> Payload | None:
        """The answer, if it is there and still right."""
        found = self._answers.pop(key, None)
        if found is None or found[0] != edition:
            return None
        self._answers[key] = found  # the newest now
        return found[1]

    def put(self, key: Key, edition: Edition, made: Payload) -> None:
        """Keep it, unless it is too long. What it shows to be old goes."""
        self._answers = {
            other: answer
            for other, answer in self._answers.items()
            if other != key and (other[0] != key[0] or answer[0] == edition)
        }
        if made.length > MOST_BYTES:
            return
        self._answers[key] = edition, made
        while len(self._answers) > MOST or self._bytes() > MOST_BYTES:
            del self._answers[next(iter(self._answers))]

    def _bytes(self) -> int:
        return sum(answer.length for _, answer in self._answers.values())

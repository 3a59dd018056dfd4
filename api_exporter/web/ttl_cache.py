"""A TTL cache: values that are made again when they are a second old."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

LIFE = 1.0
"""Seconds for which a value is made once for all who ask."""


class TTLCache(Generic[T]):
    """Makes a value when somebody asks and what there is has become too old.

    What is too old goes when the next value is made: with a thousand accounts the ends
    of their pages would take 25 MB.

    Args:
        seconds: a clock.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._made: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A second old at most."""
        now = self._seconds()
        made = self._made.get(key)
        if made is None or not 0 <= now - made[0] < LIFE:
            made = now, make()
            young = {k: m for k, m in self._made.items() if 0 <= now - m[0] < LIFE}
            self._made = {**young, key: made}
        return made[1]

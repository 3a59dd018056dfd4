"""A TTL cache: one value, which is made again when it is a second old."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

LIFE = 1.0
"""Seconds for which it is made once for all who ask."""


class TTLCache(Generic[T]):
    """Makes it when somebody asks and what there is has become too old.

    Args:
        seconds: a clock.
    """

    def __init__(self, make: Callable[[], T], seconds: Callable[[], float]) -> None:
        self._make = make
        self._seconds = seconds
        self._made: tuple[float, T] | None = None

    def __call__(self) -> T:
        """A second old at most."""
        now = self._seconds()
        if self._made is None or not 0 <= now - self._made[0] < LIFE:
            self._made = now, self._make()
        return self._made[1]

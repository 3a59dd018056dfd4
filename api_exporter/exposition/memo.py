"""Memoization: what several families share is computed once, on first use."""

from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from typing import Generic, TypeVar

R = TypeVar("R")
T = TypeVar("T")


class MemoIterable(Generic[T]):
    """Goes through something once, bit by bit as it is asked for, and remembers it.

    A family that nobody wants asks for nothing, and so nothing is made for it.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Iterator[T]:
        self._items, mine = tee(self._items)
        return mine


class MemoFunction(Generic[R, T]):
    """A function of records, called once for each however many families ask."""

    def __init__(self, function: Callable[[R], T]) -> None:
        self._function = function
        self._made: dict[int, tuple[T, R]] = {}

    def __call__(self, record: R) -> T:
        """By identity; as the record is held, no other gets its number."""
        made = self._made.get(id(record))
        if made is None:
            made = self._made[id(record)] = self._function(record), record
        return made[0]

"""Memoization: data that several families share is computed once, on first use."""

from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from typing import Generic, TypeVar

R = TypeVar("R")
T = TypeVar("T")


class MemoIterable(Generic[T]):
    """An iterable that is consumed once, item by item on demand, and kept.

    Items that no family reads are never computed.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Iterator[T]:
        self._items, copy = tee(self._items)
        return copy


class MemoFunction(Generic[R, T]):
    """A function of records that is called once for each record."""

    def __init__(self, function: Callable[[R], T]) -> None:
        self._function = function
        self._results: dict[int, tuple[T, R]] = {}

    def __call__(self, record: R) -> T:
        """Return the result by identity; a record is held, so its id() stays unique."""
        result = self._results.get(id(record))
        if result is None:
            result = self._results[id(record)] = self._function(record), record
        return result[0]

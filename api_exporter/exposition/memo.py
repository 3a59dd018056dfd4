"""Memoization: what several families share is computed once, on first use."""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, tee
from typing import Generic, TypeVar

from api_exporter.exposition.tally import finish

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


class MemoResult(Generic[T]):
    """What a generator returns; it is gone through when the first of them wants it.

    Attributes:
        steps: those of the generator, to be taken by whomever.
    """

    def __init__(self, making: Generator[None, None, T]) -> None:
        # A chain cannot be closed: who is ended halfway ends it for nobody else.
        self.steps: Iterator[None] = chain(self._make(making))

    def _make(self, making: Generator[None, None, T]) -> Iterator[None]:
        self._made = yield from making

    def whole(self) -> T:
        """It, with the steps taken that are left."""
        finish(self.steps)
        return self._made


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

"""What several families share, made when the first of them wants it."""

from collections.abc import Iterable, Iterator
from itertools import tee
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Goes through something once, bit by bit as it is asked for, and remembers it.

    A family that nobody wants asks for nothing, and so nothing is made for it.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Iterator[T]:
        self._items, mine = tee(self._items)
        return mine

"""Counts that are taken in small steps, because there may be very many things."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

AT_ONCE = 5000
"""How many are counted at one go: a millisecond's work."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def tally(keys: Iterable[K]) -> tuple[Counter[K], Iterator[None]]:
    """How many there are of each, when the steps have been gone through."""
    counts: Counter[K] = Counter()

    def count() -> Iterator[None]:
        rest = iter(keys)
        while some := list(islice(rest, AT_ONCE)):
            counts.update(some)
            yield

    return counts, count()


def chunks(records: Sequence[T]) -> Iterator[Sequence[T]]:
    """Some at a time, for whoever pauses between them."""
    for start in range(0, len(records), AT_ONCE):
        yield records[start : start + AT_ONCE]


def finish(steps: Iterable[None]) -> None:
    """Take the steps that are left, for whoever cannot pause."""
    for _ in steps:
        pass

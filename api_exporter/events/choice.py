"""What there is to do with a list, and in what pieces. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from api_exporter.events.listing import Id, Row

C = TypeVar("C")

BATCH = 100
"""Rows written between two states of the cursor."""

_HEAVY = 1024 * 1024
"""Bytes of a batch of more than one row, at most."""


class Chosen(Struct, Generic[C, Id], frozen=True):
    """What there is to do with a list.

    Attributes:
        cursor: while its rows are written.
        new: the rows that are to be written, in order.
        missed: why some may never be; "" where none is missing.
        then: makes the cursor to go on from when they are; None for the one they leave.
        lag: how old the newest row is, in seconds, while there are more; 0.0 if not.
        skipped: rows that are passed over.
    """

    cursor: C
    new: list[Row[Id]]
    missed: str = ""
    then: Callable[[C], C] | None = None
    lag: float = 0.0
    skipped: int = 0


def batches(rows: Iterable[Row[Id]]) -> Iterator[list[Row[Id]]]:
    """In what pieces they are written: the last one must be found at a file's end."""
    batch: list[Row[Id]] = []
    size = 0
    for row in rows:
        size += len(row.raw)
        if batch and (len(batch) == BATCH or size > _HEAVY):
            yield batch
            batch, size = [], len(row.raw)
        batch.append(row)
    if batch:
        yield batch

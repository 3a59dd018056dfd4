"""A log's cursor, and what there is to do with a list, in what pieces. Pure."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

import msgspec
from msgspec import Struct

from api_exporter.events.listing import Id, Key, Row

BATCH = 100
"""Rows written between two states of the cursor."""

_HEAVY = 1024 * 1024
"""Bytes of a batch of more than one row, at most."""


class LogCursor(Struct, Generic[Id], frozen=True, kw_only=True):
    """What has been written of a log.

    Attributes:
        last: the row that was written last; None before the first one.
    """

    last: Key[Id] | None = None

    @abstractmethod
    def with_(self, keys: Iterable[Key[Id]]) -> Self:
        """The same after these have been written, in this order."""

    @abstractmethod
    def after_crash(self, told: Sequence[Key[Id]]) -> Self:
        """The same with what was written before the cursor could be.

        Args:
            told: the last lines of the file.
        """

    def dumped(self) -> bytes:
        """As it stands in its file."""
        return msgspec.json.encode(self) + b"\n"

    @classmethod
    def loaded(cls, text: bytes) -> Self:
        """From its file; raises ValueError where that holds something else."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None


C = TypeVar("C", bound=LogCursor[Any])


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


def batches(rows: Iterable[Row[Id]]) -> Iterator[tuple[Row[Id], ...]]:
    """In what pieces they are written: the last one must be found at a file's end."""
    batch: list[Row[Id]] = []
    size = 0
    for row in rows:
        size += len(row.raw)
        if batch and (len(batch) == BATCH or size > _HEAVY):
            yield tuple(batch)
            batch, size = [], len(row.raw)
        batch.append(row)
    if batch:
        yield tuple(batch)

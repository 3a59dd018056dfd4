"""Per-record families: each record has one sample or none.

A family knows the record of each sample, so the next page can copy unchanged lines.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar
from zlib import crc32

from api_exporter.exposition.memo import MemoIterable
from api_exporter.exposition.text import Family, Labels, Metric, Sample, number


class Record(Protocol):
    """A record with a unique id."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Record)

MIN_BLOCK_RECORDS, MAX_BLOCK_RECORDS = 1024, 3072
"""Limits of the records in a block, except the last: about 512 KiB of text. Smaller
blocks would mean more slices to send."""

BLOCK_START_INTERVAL = 1024
"""On average, one record in this number may begin a block."""


class Blocks(MemoIterable[tuple[R, ...]]):
    """Records in blocks that begin at certain ids, so a change moves no other border.

    Blocks are cut on demand, once for all families.
    """

    def __init__(self, records: Iterable[R]) -> None:
        super().__init__(_split(records))


def _split(all_records: Iterable[R]) -> Iterator[tuple[R, ...]]:
    records, start = tuple(all_records), 0
    while start < len(records):
        end = start + MAX_BLOCK_RECORDS
        candidates = records[start + MIN_BLOCK_RECORDS : end]
        for index, record in enumerate(candidates, start + MIN_BLOCK_RECORDS):
            if crc32(record.id.encode()) % BLOCK_START_INTERVAL == 0:
                end = index
                break
        yield records[start:end]
        start = end


class PerRecordFamily(Family, Generic[R]):
    """A family with a sample of each record that has a value.

    Args:
        labelled: returns the labels of a record.
        value: returns None for a record without a sample.
        given: all other values on which a line depends, besides its record.
    """

    def __init__(
        self,
        metric: Metric,
        blocks: Blocks[R],
        labelled: Callable[[R], Labels],
        value: Callable[[R], float | None],
        *,
        given: Hashable = None,
    ) -> None:
        super().__init__(metric, _samples(blocks, labelled, value))
        self.blocks = blocks
        self.given = given
        self._labelled = labelled
        self._value = value

    def lines(self, records: Iterable[R], known: Mapping[int, str]) -> list[str]:
        """Return a line for each record, empty without a sample.

        Args:
            known: rendered lines by the id() of their records.
        """
        name, labelled, value_of = self.metric.name, self._labelled, self._value
        return [
            known.get(id(record))
            or (
                ""
                if (value := value_of(record)) is None
                else f"{name}{labelled(record)}"
                f" {value if isinstance(value, int) else number(value)}"
            )
            for record in records
        ]


def _samples(
    blocks: Blocks[R],
    labelled: Callable[[R], Labels],
    value_of: Callable[[R], float | None],
) -> Iterator[Sample]:
    for block in blocks:
        for record in block:
            if (value := value_of(record)) is not None:
                yield labelled(record), value

"""Per-record families: each of many records has one sample, or none.

They know which record a sample is of, so that the next page need not make it anew.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar
from zlib import crc32

from api_exporter.exposition.memo import MemoIterable
from api_exporter.exposition.text import Family, Labels, Metric, Sample, number


class Record(Protocol):
    """A record with an id of its own."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Record)

SHORTEST, LONGEST = 1024, 3072
"""How many records are in a block, but for the last: that makes half a mebibyte of
text, more or less. Smaller ones make more slices to send."""

SPARSE = 1024
"""One record in so many may be the first of a block."""


class Blocks(MemoIterable[tuple[R, ...]]):
    """Records in blocks that an id begins: who comes or goes moves no other border.

    They are cut one after the other when a family wants them, once for all families.
    """

    def __init__(self, records: Iterable[R]) -> None:
        super().__init__(_cut(records))


def _cut(found: Iterable[R]) -> Iterator[tuple[R, ...]]:
    records, start = tuple(found), 0
    while start < len(records):
        end = start + LONGEST
        candidates = records[start + SHORTEST : end]
        for place, record in enumerate(candidates, start + SHORTEST):
            if crc32(record.id.encode()) % SPARSE == 0:
                end = place
                break
        yield records[start:end]
        start = end


class PerRecordFamily(Family, Generic[R]):
    """A family with a sample of each record that has a value.

    Args:
        labelled: the labels of a record.
        value: None where it has no sample.
        given: all that labels and values depend on beside the record.
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
        """A line of each record, empty where it has none.

        Args:
            known: lines that need not be made, by the identity of their records.
        """
        name, labelled, valued = self.metric.name, self._labelled, self._value
        return [
            known.get(id(record))
            or (
                ""
                if (value := valued(record)) is None
                else f"{name}{labelled(record)}"
                f" {value if isinstance(value, int) else number(value)}"
            )
            for record in records
        ]


def _samples(
    blocks: Blocks[R],
    labelled: Callable[[R], Labels],
    valued: Callable[[R], float | None],
) -> Iterator[Sample]:
    for block in blocks:
        for record in block:
            if (value := valued(record)) is not None:
                yield labelled(record), value

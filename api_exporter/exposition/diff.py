"""The difference between a block of records and the block before it in its place."""

from msgspec import Struct

from api_exporter.exposition.per_record import Record

Records = tuple[Record, ...]

FEW = 1 / 8
"""Of a block: to compare what so many records say is cheaper than to look for lines."""

ENOUGH = 1 / 4
"""Of a block: for the lines of so many it pays to take the text of before apart."""


class BlockDiff(Struct, frozen=True):
    """Which records are not the same objects.

    Attributes:
        pairs: those of before and those in their places, where they are few and none
            came or went; else None.
        alike: whether enough records are the same to look for their lines.
    """

    pairs: tuple[Records, Records] | None
    alike: bool

    @classmethod
    def between(cls, old: Records, new: Records) -> "BlockDiff":
        if len(old) == len(new):
            places = [n for n, record in enumerate(new) if record is not old[n]]
            if len(places) <= FEW * len(new):
                before = tuple([old[place] for place in places])
                return cls((before, tuple([new[place] for place in places])), True)
        same = set(map(id, old)).intersection(map(id, new))
        return cls(None, len(same) >= ENOUGH * len(new))

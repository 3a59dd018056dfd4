"""Incremental rendering: a page is made of the one before it.

Nothing is kept but that page and the records that its lines are of: a record that has
not changed is the same object as before, and so is found again, with its line. What is
not there any more is not on the new page, and so is not kept either. Of a family that
is not of records it is known what it was made of: while that is equal, its text is.
"""

from collections.abc import Hashable, Iterable, Mapping
from math import inf
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.exposition.pages import PIECE_BYTES, Page, Piece, piece
from api_exporter.exposition.per_record import PerRecordFamily, Record
from api_exporter.exposition.text import (
    Edition,
    Family,
    UnchangedFamily,
    heading,
    render,
)

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


class RenderedFamily(Struct, frozen=True, gc=False):
    """Where the text of a family stands that is not of records."""

    edition: Edition
    piece: Piece
    start: int
    end: int

    @property
    def text(self) -> bytes:
        return self.piece.text[self.start : self.end]


class RenderedBlock(Struct, frozen=True, gc=False):
    """A piece with the lines that a block of records has in a family.

    Attributes:
        given: all that they depend on beside the records.
        told: the records that have a line, in the order of the lines.
        head: how many characters stand before the first line.
    """

    piece: Piece
    name: str
    given: Hashable
    block: Records
    told: Records
    head: int


class RenderedPage(Struct, frozen=True, gc=False):
    """A page, and what the next one may be made of.

    Attributes:
        gathered: the pieces of families that are not of records.
        families: these families, but for those in several pieces.
    """

    page: Page = ()
    gathered: tuple[Piece, ...] = ()
    families: Mapping[str, RenderedFamily] = MappingProxyType({})
    lines: tuple[RenderedBlock, ...] = ()

    @property
    def editions(self) -> Mapping[str, Edition]:
        """Those of the families that can be taken over."""
        return {name: family.edition for name, family in self.families.items()}


EMPTY_PAGE = RenderedPage()


class PageTooLong(Exception):
    """The text would take more room than there is."""


def render_page(
    families: Iterable[Family],
    before: RenderedPage = EMPTY_PAGE,
    *,
    room: float = inf,
) -> RenderedPage:
    """Return the families as a page; raises PageTooLong.

    The text does not depend on the page before, only the work does.

    Args:
        room: bytes that the text may have.
    """
    making = _PageBuilder(before, room)
    for family in families:
        if isinstance(family, PerRecordFamily):
            making.add(family)
        elif isinstance(family, UnchangedFamily):
            making.keep(family.metric.name)
        else:
            texts = map(str.encode, render(family))
            making.gather(family.metric.name, family.edition, texts)
    return making.made()


class _PageBuilder:
    def __init__(self, before: RenderedPage, room: float) -> None:
        self._room = room
        self._known = before.families
        self._texts = {piece.text: piece for piece in before.gathered}
        self._before = {(old.name, old.block[0].id): old for old in before.lines}
        self._changes: dict[tuple[int, int], BlockDiff] = {}
        self._page: list[Piece] = []
        self._gathered: list[Piece] = []
        self._lines: list[RenderedBlock] = []
        self._waiting: list[bytes] = []
        self._size = 0
        self._begun: list[tuple[str, Edition, int, int]] = []
        self._families: dict[str, RenderedFamily] = {}

    def made(self) -> RenderedPage:
        self._cut()
        return RenderedPage(
            page=tuple(self._page),
            gathered=tuple(self._gathered),
            families=MappingProxyType(self._families),
            lines=tuple(self._lines),
        )

    def gather(
        self, name: str, edition: Edition | None, texts: Iterable[bytes]
    ) -> None:
        """Small texts make a piece together."""
        start, pieces = self._size, len(self._gathered)
        for text in texts:
            self._waiting.append(text)
            self._size += len(text)
            if self._size >= PIECE_BYTES:
                self._cut()
        if edition is not None and pieces == len(self._gathered):
            self._begun.append((name, edition, start, self._size))

    def keep(self, name: str) -> None:
        """The text that a family had before."""
        known = self._known[name]
        start, self._size = self._size, self._size + known.end - known.start
        self._waiting.append(known.text)
        self._begun.append((name, known.edition, start, self._size))
        if self._size >= PIECE_BYTES:
            self._cut()

    def _cut(self) -> None:
        if self._size:
            text = b"".join(self._waiting)
            gathered = self._texts.get(text) or piece(text)
            self._gathered.append(gathered)
            self._put(gathered)
            for name, edition, start, end in self._begun:
                family = RenderedFamily(edition, gathered, start, end)
                self._families[name] = family
            self._waiting, self._size, self._begun = [], 0, []

    def _put(self, new: Piece) -> None:
        self._page.append(new)
        self._room -= len(new.text)
        if self._room < 0:
            raise PageTooLong

    def add(self, family: PerRecordFamily[Record]) -> None:
        """A piece for each block of records, but where none of them has a line."""
        self._cut()
        before = heading(family.metric)
        for block in family.blocks:
            old = self._before.get((family.metric.name, block[0].id))
            if old is not None and old.given != family.given:
                old = None
            lines = self._unchanged(family, old, block, before)
            if lines is None:
                lines = self._fresh(family, old, block, before)
            if lines is not None:
                self._lines.append(lines)
                self._put(lines.piece)
                before = ""

    def _unchanged(
        self,
        family: PerRecordFamily[Record],
        old: RenderedBlock | None,
        block: Records,
        before: str,
    ) -> RenderedBlock | None:
        """The lines of before, where all records say the same as then."""
        if old is None or old.head != len(before):
            return None
        change = self._change(old.block, block)
        if change.pairs is None:
            return None
        said, say = (family.lines(records, {}) for records in change.pairs)
        if said != say:
            return None
        told = block
        if old.told is not old.block:
            now = dict(zip(map(id, change.pairs[0]), change.pairs[1], strict=True))
            told = tuple([now.get(id(record), record) for record in old.told])
        return replace(old, block=block, told=told)

    def _fresh(
        self,
        family: PerRecordFamily[Record],
        old: RenderedBlock | None,
        block: Records,
        before: str,
    ) -> RenderedBlock | None:
        """New lines, but those of records that were there are taken over."""
        known: dict[int, str] = {}
        if old is not None and self._change(old.block, block).alike:
            # As long as both blocks hold their records, no two have the same number.
            texts = old.piece.text[old.head :].decode().split("\n")
            known = dict(zip(map(id, old.told), texts, strict=False))
        told, made = block, family.lines(block, known)
        if not all(made):
            told = tuple([r for r, line in zip(block, made, strict=True) if line])
            made = list(filter(None, made))
        if not told:
            return None
        text = (before + "\n".join(made) + "\n").encode()
        return RenderedBlock(
            piece=piece(text, series=len(told)),
            name=family.metric.name,
            given=family.given,
            block=block,
            told=told,
            head=len(before),
        )

    def _change(self, old: Records, new: Records) -> BlockDiff:
        """All families of a block ask for it."""
        key = id(old), id(new)
        found = self._changes.get(key)
        if found is None:
            found = self._changes[key] = BlockDiff.between(old, new)
        return found

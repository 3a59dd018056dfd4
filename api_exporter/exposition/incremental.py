"""Incremental rendering: a page is made of the one before it.

Nothing is kept but that page and the records that its lines are of: a record that has
not changed is the same object as before, and so is found again, with its line. What is
not there any more is not on the new page, and so is not kept either. Of a family that
is not of records it is known what it was made of: while that is equal, its text is.
"""

from collections.abc import Generator, Hashable, Iterable, Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.exposition.diff import BlockDiff, Records
from api_exporter.exposition.pages import PIECE_BYTES, Page, Piece, piece_in_steps
from api_exporter.exposition.per_record import PerRecordFamily, Record
from api_exporter.exposition.text import (
    CHUNK_SAMPLES,
    Edition,
    Family,
    UnchangedFamily,
    heading,
    render,
)


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
    families: Mapping[str, RenderedFamily] = {}
    lines: tuple[RenderedBlock, ...] = ()

    @property
    def editions(self) -> Mapping[str, Edition]:
        """Those of the families that can be taken over."""
        return {name: family.edition for name, family in self.families.items()}


EMPTY_PAGE = RenderedPage()


class PageTooLong(Exception):
    """The text would take more room than there is."""


def render_page(
    families: Iterable[Family | None],
    before: RenderedPage = EMPTY_PAGE,
    *,
    room: float = inf,
) -> Generator[None, None, RenderedPage]:
    """The families as a page, with places to pause; None among them is one more.

    The text is the same whatever was before: only the work is not.

    Args:
        room: bytes that the text may have; raises TooLong.
    """
    making = _PageBuilder(before, room)
    for family in families:
        if family is None:
            yield
        elif isinstance(family, PerRecordFamily):
            yield from making.add(family)
        elif isinstance(family, UnchangedFamily):
            yield from making.keep(family.metric.name)
        else:
            texts = map(str.encode, render([family]))
            yield from making.gather(family.metric.name, family.edition, texts)
    return (yield from making.made())


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

    def made(self) -> Generator[None, None, RenderedPage]:
        yield from self._cut()
        return RenderedPage(
            page=tuple(self._page),
            gathered=tuple(self._gathered),
            families=self._families,
            lines=tuple(self._lines),
        )

    def gather(
        self, name: str, edition: Edition | None, texts: Iterable[bytes]
    ) -> Generator[None, None, None]:
        """Small texts make a piece together."""
        start, pieces = self._size, len(self._gathered)
        for text in texts:
            self._waiting.append(text)
            self._size += len(text)
            if self._size >= PIECE_BYTES:
                yield from self._cut()
            yield
        if edition is not None and pieces == len(self._gathered):
            self._begun.append((name, edition, start, self._size))

    def keep(self, name: str) -> Generator[None, None, None]:
        """The text that a family had before."""
        known = self._known[name]
        start, self._size = self._size, self._size + known.end - known.start
        self._waiting.append(known.text)
        self._begun.append((name, known.edition, start, self._size))
        if self._size >= PIECE_BYTES:
            yield from self._cut()
            yield

    def _cut(self) -> Generator[None, None, None]:
        if self._size:
            text = b"".join(self._waiting)
            gathered = self._texts.get(text) or (yield from piece_in_steps(text))
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

    def add(self, family: PerRecordFamily[Record]) -> Generator[None, None, None]:
        """A piece for each block of records, but where none of them has a line."""
        yield from self._cut()
        before = heading(family.metric)
        for block in family.blocks:
            old = self._before.get((family.metric.name, block[0].id))
            if old is not None and old.given != family.given:
                old = None
            lines = self._unchanged(family, old, block, before)
            if lines is None:
                lines = yield from self._fresh(family, old, block, before)
            if lines is not None:
                self._lines.append(lines)
                self._put(lines.piece)
                before = ""
            yield

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
    ) -> Generator[None, None, RenderedBlock | None]:
        """New lines, but those of records that were there are taken over."""
        known: dict[int, str] = {}
        if old is not None and self._change(old.block, block).alike:
            # As long as both blocks hold their records, no two have the same number.
            texts = old.piece.text[old.head :].decode().split("\n")
            known = dict(zip(map(id, old.told), texts, strict=False))
        told: list[Record] = []
        parts = [before.encode()]
        for start in range(0, len(block), CHUNK_SAMPLES):
            some = block[start : start + CHUNK_SAMPLES]
            made = family.lines(some, known)
            if not all(made):
                some = tuple([r for r, line in zip(some, made, strict=True) if line])
                made = list(filter(None, made))
            if made:
                told += some
                parts.append(("\n".join(made) + "\n").encode())
            yield
        if not told:
            return None
        text = b"".join(parts)
        return RenderedBlock(
            piece=(yield from piece_in_steps(text, series=len(told))),
            name=family.metric.name,
            given=family.given,
            block=block,
            told=block if len(told) == len(block) else tuple(told),
            head=len(before),
        )

    def _change(self, old: Records, new: Records) -> BlockDiff:
        """All families of a block ask for it."""
        key = id(old), id(new)
        found = self._changes.get(key)
        if found is None:
            found = self._changes[key] = BlockDiff.between(old, new)
        return found

"""Incremental rendering: each page is rendered from the previous one.

The previous page and its records are the only cache. An unchanged record is the same
object, so its line is found by identity and copied. Removed records are not kept. A
family that is not per record keeps its text while its edition is equal.
"""

from collections.abc import Hashable, Iterable, Mapping
from math import inf
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.exposition.pages import PIECE_BYTES, Page, Piece, piece
from api_exporter.exposition.per_record import PerRecordFamily, Record
from api_exporter.exposition.text import (
    Family,
    Inputs,
    UnchangedFamily,
    heading,
    render,
)

Records = tuple[Record, ...]

MAX_COMPARED_SHARE = 1 / 8
"""The maximum share of changed records of which both lines are rendered to compare."""

MIN_UNCHANGED_SHARE = 1 / 4
"""The minimum share of unchanged records for which a block's text is split."""


class BlockDiff(Struct, frozen=True):
    """The records of a block that are not the same objects as before.

    Attributes:
        changed: the changed records before and after; None if they are many, or if one
            was added or removed.
        is_similar: if enough records are the same to search for their lines.
    """

    changed: tuple[Records, Records] | None
    is_similar: bool

    @classmethod
    def between(cls, old: Records, new: Records) -> "BlockDiff":
        if len(old) == len(new):
            indexes = [n for n, record in enumerate(new) if record is not old[n]]
            if len(indexes) <= MAX_COMPARED_SHARE * len(new):
                before = tuple([old[index] for index in indexes])
                return cls((before, tuple([new[index] for index in indexes])), True)
        same = set(map(id, old)).intersection(map(id, new))
        return cls(None, len(same) >= MIN_UNCHANGED_SHARE * len(new))


class RenderedFamily(Struct, frozen=True, gc=False):
    """The position of the text of a family that is not per record."""

    edition: Inputs
    piece: Piece
    start: int
    end: int

    @property
    def text(self) -> bytes:
        return self.piece.text[self.start : self.end]


class RenderedBlock(Struct, frozen=True, gc=False):
    """A piece with the lines of one family for a block of records.

    Attributes:
        given: all other values on which the lines depend, besides the record.
        rendered: the records that have a line, in line order.
        head: the length of the heading, which is ASCII, before the first line.
    """

    piece: Piece
    name: str
    given: Hashable
    block: Records
    rendered: Records
    head: int


class RenderedPage(Struct, frozen=True, gc=False):
    """A page and the data from which the next page is rendered.

    Attributes:
        gathered: the pieces of families that are not per record.
        families: these families, except those that need several pieces.
        blocks: the pieces of per-record families.
    """

    page: Page = ()
    gathered: tuple[Piece, ...] = ()
    families: Mapping[str, RenderedFamily] = MappingProxyType({})
    blocks: tuple[RenderedBlock, ...] = ()

    @property
    def editions(self) -> Mapping[str, Inputs]:
        """The editions of the families whose text can be copied."""
        return {name: family.edition for name, family in self.families.items()}


EMPTY_PAGE = RenderedPage()


class PageTooLong(Exception):
    """The text of a page exceeds its limit."""


def render_page(
    families: Iterable[Family],
    before: RenderedPage = EMPTY_PAGE,
    *,
    max_bytes: float = inf,
) -> RenderedPage:
    """Return the families as a page.

    The previous page changes only the amount of work, never the text.

    Args:
        max_bytes: of text; a longer page raises PageTooLong.
    """
    builder = _PageBuilder(before, max_bytes)
    for family in families:
        if isinstance(family, PerRecordFamily):
            builder.add_blocks(family)
        elif isinstance(family, UnchangedFamily):
            builder.copy(family.metric.name)
        else:
            texts = map(str.encode, render(family))
            builder.add_texts(family.metric.name, family.edition, texts)
    return builder.build()


class _PageBuilder:
    def __init__(self, before: RenderedPage, max_bytes: float) -> None:
        self._free_bytes = max_bytes
        self._old_families = before.families
        self._old_pieces = {piece.text: piece for piece in before.gathered}
        self._old_blocks = {(old.name, old.block[0].id): old for old in before.blocks}
        self._diffs: dict[tuple[int, int], BlockDiff] = {}
        self._page: list[Piece] = []
        self._gathered: list[Piece] = []
        self._blocks: list[RenderedBlock] = []
        self._pending_texts: list[bytes] = []
        self._length = 0
        self._pending: list[tuple[str, Inputs, int, int]] = []
        self._families: dict[str, RenderedFamily] = {}

    def build(self) -> RenderedPage:
        self._end_piece()
        return RenderedPage(
            page=tuple(self._page),
            gathered=tuple(self._gathered),
            families=MappingProxyType(self._families),
            blocks=tuple(self._blocks),
        )

    def add_texts(
        self, name: str, edition: Inputs | None, texts: Iterable[bytes]
    ) -> None:
        start, pieces = self._length, len(self._gathered)
        for text in texts:
            self._pending_texts.append(text)
            self._length += len(text)
            if self._length >= PIECE_BYTES:
                self._end_piece()
        if edition is not None and pieces == len(self._gathered):
            self._pending.append((name, edition, start, self._length))

    def copy(self, name: str) -> None:
        known = self._old_families[name]
        start, self._length = self._length, self._length + known.end - known.start
        self._pending_texts.append(known.text)
        self._pending.append((name, known.edition, start, self._length))
        if self._length >= PIECE_BYTES:
            self._end_piece()

    def _end_piece(self) -> None:
        if self._length:
            text = b"".join(self._pending_texts)
            gathered = self._old_pieces.get(text) or piece(text)
            self._gathered.append(gathered)
            self._put(gathered)
            for name, edition, start, end in self._pending:
                family = RenderedFamily(edition, gathered, start, end)
                self._families[name] = family
            self._pending_texts, self._length, self._pending = [], 0, []

    def _put(self, added: Piece) -> None:
        self._page.append(added)
        self._free_bytes -= len(added.text)
        if self._free_bytes < 0:
            raise PageTooLong

    def add_blocks(self, family: PerRecordFamily[Record]) -> None:
        self._end_piece()
        before = heading(family.metric)
        for block in family.blocks:
            old = self._old_blocks.get((family.metric.name, block[0].id))
            if old is not None and old.given != family.given:
                old = None
            rendered = self._unchanged(family, old, block, before)
            if rendered is None:
                rendered = self._rendered(family, old, block, before)
            if rendered is not None:
                self._blocks.append(rendered)
                self._put(rendered.piece)
                before = ""

    def _unchanged(
        self,
        family: PerRecordFamily[Record],
        old: RenderedBlock | None,
        block: Records,
        before: str,
    ) -> RenderedBlock | None:
        """Return the previous block if no changed record has another line, or None."""
        if old is None or old.head != len(before):
            return None
        diff = self._diff(old.block, block)
        if diff.changed is None:
            return None
        lines_before, lines = (family.lines(records, {}) for records in diff.changed)
        if lines != lines_before:
            return None
        rendered = block
        if old.rendered is not old.block:
            records_before, records = diff.changed
            replacements = dict(zip(map(id, records_before), records, strict=True))
            rendered = tuple(
                [replacements.get(id(record), record) for record in old.rendered]
            )
        return replace(old, block=block, rendered=rendered)

    def _rendered(
        self,
        family: PerRecordFamily[Record],
        old: RenderedBlock | None,
        block: Records,
        before: str,
    ) -> RenderedBlock | None:
        known: dict[int, str] = {}
        if old is not None and self._diff(old.block, block).is_similar:
            # Both blocks hold their records, so no two records have the same id().
            texts = old.piece.text[old.head :].decode().split("\n")
            known = dict(zip(map(id, old.rendered), texts, strict=False))
        rendered, lines = block, family.lines(block, known)
        if not all(lines):
            rendered = tuple([r for r, line in zip(block, lines, strict=True) if line])
            lines = list(filter(None, lines))
        if not rendered:
            return None
        text = (before + "\n".join(lines) + "\n").encode()
        return RenderedBlock(
            piece=piece(text, series=len(rendered)),
            name=family.metric.name,
            given=family.given,
            block=block,
            rendered=rendered,
            head=len(before),
        )

    def _diff(self, old: Records, new: Records) -> BlockDiff:
        key = id(old), id(new)
        found = self._diffs.get(key)
        if found is None:
            found = self._diffs[key] = BlockDiff.between(old, new)
        return found

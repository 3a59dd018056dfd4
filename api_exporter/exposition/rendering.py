"""Rendering: a family is one text; it keeps its records, and takes their lines out of
its old text.

An unchanged record is the same object, so its line is found by identity. A family with
the same inputs_key keeps its whole text. The previous page is the only cache.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import inf
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct

from api_exporter.exposition.pages import PIECE_BYTES, Page, piece
from api_exporter.exposition.text import (
    CHUNK_SAMPLES,
    Family,
    Inputs,
    Labels,
    Metric,
    UnchangedFamily,
    heading,
    number,
    render,
)

R = TypeVar("R")

_SAMPLE = 1000
"""Records of which one is still known unless all have changed."""


class PerRecordFamily(Family, Generic[R]):
    """A family in which each record has one sample or none.

    Args:
        value: returns None for a record without a sample.
        given: all other values on which a line depends, besides its record.
    """

    def __init__(
        self,
        metric: Metric,
        records: Sequence[R],
        labelled: Callable[[R], Labels],
        value: Callable[[R], float | None],
        *,
        given: object = None,
    ) -> None:
        samples = ((labelled(r), v) for r in records if (v := value(r)) is not None)
        super().__init__(metric, samples)
        self.given = given
        self.records, self._labelled, self._value = records, labelled, value

    def lines(self, known: Mapping[int, str], rendered: list[object]) -> Iterator[str]:
        """Yield the text in chunks, and add the records that have a line to `rendered`.

        Args:
            known: lines by the id() of their records.
        """
        name, labelled, value_of = self.metric.name, self._labelled, self._value
        records, before = iter(self.records), heading(self.metric)
        while some := tuple(islice(records, CHUNK_SAMPLES)):
            lines = [
                known.get(id(record))
                or (
                    ""
                    if (value := value_of(record)) is None
                    else f"{name}{labelled(record)}"
                    f" {value if isinstance(value, int) else number(value)}"
                )
                for record in some
            ]
            if not all(lines):
                some = tuple([r for r, line in zip(some, lines, strict=True) if line])
                lines = list(filter(None, lines))
            if lines:
                rendered += some
                yield before + "\n".join(lines) + "\n"
                before = ""


class RenderedFamily(Struct, frozen=True, gc=False):
    """The text of a family, its inputs, and the records of its lines, in line order."""

    inputs_key: Inputs | None = None
    page: Page = ()
    given: object = None
    records: Sequence[object] = ()

    def lines(self, family: PerRecordFamily[R]) -> Mapping[int, str]:
        """Return the lines that a family may copy, by the id() of their records.

        No two records have the same id(), because this family holds its records.
        """
        if self.given != family.given:
            return {}
        if {*map(id, self.records[:_SAMPLE])}.isdisjoint(map(id, family.records)):
            return {}  # all has changed: splitting the text would be in vain
        head = heading(family.metric)
        # Not splitlines(): a label's value may have other line ends, such as U+2028.
        lines = (
            piece.text.decode().removeprefix(head).split("\n")[:-1]
            for piece in self.page
        )
        return dict(zip(map(id, self.records), chain.from_iterable(lines), strict=True))


class RenderedPage(Struct, frozen=True, gc=False):
    """The families of a collector by name, in their order."""

    families: Mapping[str, RenderedFamily] = MappingProxyType({})

    @property
    def page(self) -> Page:
        return tuple([piece for one in self.families.values() for piece in one.page])

    @property
    def inputs_keys(self) -> Mapping[str, Inputs]:
        """The inputs_keys of the families whose inputs are known."""
        families = self.families.items()
        return {
            name: one.inputs_key for name, one in families if one.inputs_key is not None
        }


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
    page: dict[str, RenderedFamily] = {}
    for family in families:
        rendered = before.families.get(family.metric.name, RenderedFamily())
        if not isinstance(family, UnchangedFamily):
            rendered = _rendered(family, rendered, max_bytes)
        max_bytes -= sum(len(piece.text) for piece in rendered.page)
        if max_bytes < 0:
            raise PageTooLong
        page[family.metric.name] = rendered
    return RenderedPage(MappingProxyType(page))


def _rendered(
    family: Family, before: RenderedFamily, max_bytes: float
) -> RenderedFamily:
    records: list[object] = []
    every: Sequence[object] = ()
    given = None
    if isinstance(family, PerRecordFamily):
        given, every = family.given, family.records
        chunks = family.lines(before.lines(family), records)
    else:
        chunks = render(family)
    old = iter(before.page)
    page = []
    for text in _long_texts(chunks):
        max_bytes -= len(text)
        if max_bytes < 0:
            raise PageTooLong
        kept = next(old, None)
        page.append(kept if kept and kept.text == text else piece(text))
    # The families of a kind share the records if all of these have lines.
    shown = tuple(records) if len(records) < len(every) else every
    return RenderedFamily(family.inputs_key, tuple(page), given, shown)


def _long_texts(chunks: Iterable[str]) -> Iterator[bytes]:
    """Yield the text in the length of a piece; the last one may be shorter."""
    texts: list[bytes] = []
    length = 0
    for chunk in map(str.encode, chunks):
        texts.append(chunk)
        length += len(chunk)
        if length >= PIECE_BYTES:
            yield b"".join(texts)
            texts, length = [], 0
    if texts:
        yield b"".join(texts)

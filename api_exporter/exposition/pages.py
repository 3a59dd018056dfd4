"""Pages: the newest text of every collector, ready to be sent plain or as gzip.

A page is a tuple of pieces. Beside a piece's text lies its raw deflate form, ended with
a full flush, so that pieces of different collectors and of different rounds, put one
after the other, are one valid deflate stream: a refresh compresses what it rendered,
and the first scrape after it compresses a small page, or short pieces, alone.
"""

import struct
from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from api_exporter.exposition import crc
from api_exporter.exposition.deflate import checksum, deflated
from api_exporter.exposition.text import cut_labels

PIECE_BYTES = 512 * 1024
"""About how much text makes a piece. Larger slices are sent with fewer copies, smaller
ones pin less memory for a reader that stops; half a mebibyte was the best of both."""

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""RFC 1952: deflate, no flags, no time, unknown system."""


_SHORT = 32 * 1024
"""Bytes of a text whose compressed form nobody keeps: small pages need none of it."""


class Piece(Struct, frozen=True):
    """Some text, its compressed form, and its checksum with what extends it.

    Attributes:
        kept: the compressed form, but of a short text.
        series: samples in the text.
        cut: labels in it that were cut because of their length.
    """

    text: bytes
    kept: bytes
    crc: int
    shift: int
    series: int
    cut: int = 0

    @property
    def deflated(self) -> bytes:
        """The compressed form."""
        return self.kept or deflated(self.text)


def piece(text: bytes, *, series: int | None = None, last: bool = False) -> Piece:
    """A text with its checksum; only the last piece of a body ends the deflate stream.

    Args:
        series: samples in the text; counted where nobody has.
    """
    if series is None:
        series = text.count(b"\n") - text.count(b"\n#") - text.startswith(b"#")
    return Piece(
        text=text,
        kept=deflated(text, last=last) if last or len(text) > _SHORT else b"",
        crc=checksum(text),
        shift=crc.shift(len(text)),
        series=series,
        cut=cut_labels(text),
    )


Page = tuple[Piece, ...]
"""The text of a collector; an empty one where there is nothing to tell."""


FIRST_BYTES = 64 * 1024 + 1
"""How long the first slice of a body is: just enough for the transport to say stop. It
is sent together with the headers and so copied for each reader; what follows is not."""


class Payload(Struct, frozen=True):
    """What is sent for one scrape, in slices that are shared by all scrapes."""

    slices: tuple[bytes, ...]
    length: int


_SMALL = 256 * 1024
"""Bytes of text that are compressed anew as a whole: a millisecond's work, once for all
scrapes. Pieces that are flushed one by one make half as much again of so little."""


class JoinedPages(Struct, frozen=True, dict=True):
    """All pages at one instant, in the collectors' order.

    A form is made when the first scrape asks for it, once for all scrapes.

    Attributes:
        crc: of the text.
    """

    pieces: tuple[Piece, ...]
    crc: int

    @cached_property
    def text(self) -> tuple[bytes, ...]:
        """The slices of the plain form."""
        return _with_short_start(p.text for p in self.pieces)

    @cached_property
    def text_length(self) -> int:
        """Bytes of the plain form."""
        return sum(len(p.text) for p in self.pieces)

    @cached_property
    def deflated(self) -> tuple[bytes, ...]:
        """The slices of a gzip member, but for its end."""
        if self.text_length <= _SMALL:
            packed = [deflated(b"".join([p.text for p in self.pieces]))]
        else:
            packed = [p.deflated for p in self.pieces]
        start, *rest = packed
        return _with_short_start([_GZIP_HEADER + start, *rest])

    @cached_property
    def deflated_length(self) -> int:
        """Bytes of the gzip member, but for its end."""
        return sum(map(len, self.deflated))

    def plain(self, tail: Piece) -> Payload:
        return Payload((*self.text, tail.text), self.text_length + len(tail.text))

    def gzipped(self, tail: Piece) -> Payload:
        """One gzip member (RFC 1952): header, deflated pieces, checksum, length."""
        checksum = crc.combine(self.crc, tail.crc, tail.shift)
        size = (self.text_length + len(tail.text)) & 0xFFFFFFFF
        end = tail.deflated + struct.pack("<LL", checksum, size)
        return Payload((*self.deflated, end), self.deflated_length + len(end))


def _with_short_start(slices: Iterable[bytes]) -> tuple[bytes, ...]:
    """The same bytes: FIRST_BYTES of them, if there are so many, then the rest."""
    start, rest = b"", iter(slices)
    for slice_ in rest:
        start += slice_
        if len(start) >= FIRST_BYTES:
            break
    return tuple(filter(None, (start[:FIRST_BYTES], start[FIRST_BYTES:], *rest)))


_KEPT = 16
"""So many choices of collectors are kept put together; each takes a mebibyte."""


class Pages:
    """The newest page of each collector."""

    def __init__(self, names: Sequence[str]) -> None:
        self._pages: dict[str, Page] = dict.fromkeys(names, ())
        self._wholes: dict[frozenset[str] | None, JoinedPages] = {}

    def publish(self, name: str, page: Page) -> None:
        """Replace a collector's page; an empty one withdraws it."""
        self._pages[name] = page
        self._wholes.clear()

    @property
    def names(self) -> tuple[str, ...]:
        """The collectors', in their order."""
        return tuple(self._pages)

    def series(self) -> dict[str, int]:
        return {name: sum(p.series for p in page) for name, page in self._pages.items()}

    def lengths(self) -> dict[str, int]:
        return {
            name: sum(len(p.text) for p in page) for name, page in self._pages.items()
        }

    def cut(self) -> int:
        """How many labels of the pages were cut because of their length."""
        return sum(p.cut for page in self._pages.values() for p in page)

    def whole(self, names: frozenset[str] | None = None) -> JoinedPages:
        """All pages; put together once for all scrapes until the next publication.

        Args:
            names: of the collectors that are wanted; None for all.
        """
        found = self._wholes.get(names)
        if found is None:
            if len(self._wholes) >= _KEPT:
                self._wholes.clear()
            found = self._wholes[names] = _joined(
                tuple(
                    p
                    for name, page in self._pages.items()
                    if names is None or name in names
                    for p in page
                )
            )
        return found


def _joined(every: tuple[Piece, ...]) -> JoinedPages:
    checksum = 0
    for p in every:
        checksum = crc.combine(checksum, p.crc, p.shift)
    return JoinedPages(pieces=every, crc=checksum)

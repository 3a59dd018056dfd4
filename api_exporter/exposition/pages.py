"""Pages: the newest text of every collector, ready to be sent plain or as gzip.

A page is a tuple of pieces. The raw deflate form of each ends with a full flush, so
pieces of all collectors form one stream. A refresh compresses only what it rendered;
the first scrape after it compresses only a small page, or short pieces.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice

from msgspec import Struct

from api_exporter.exposition.deflate import checksum, combine, deflated, shift
from api_exporter.exposition.text import count_cut_labels

PIECE_BYTES = 512 * 1024
"""The approximate length of a piece in bytes. Larger slices are sent with fewer copies;
smaller ones use less memory for a client that stops reading. 512 KiB was measured best.
"""

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""RFC 1952: deflate, no flags, no time, unknown system."""


_MAX_SHORT_BYTES = 32 * 1024
"""Bytes up to which a text is compressed, and its checksum computed, when needed."""


class Piece(Struct, frozen=True, gc=False):
    """A text, its compressed form and its checksum.

    Attributes:
        stored: the compressed form, empty for a short text.
        crc: the checksum, 0 for a short text.
        shift: the factor of `combine`, likewise.
        cut_count: the number of labels that were cut because of their length.
    """

    text: bytes
    stored: bytes
    crc: int
    shift: int
    series: int
    cut_count: int

    @property
    def deflated(self) -> bytes:
        return self.stored or deflated(self.text)

    def checksum_after(self, before: int) -> int:
        """Return the checksum of a text that ends with this one."""
        if self.shift:
            return combine(before, self.crc, self.shift)
        return checksum(self.text, before)


def piece(text: bytes, *, last: bool = False) -> Piece:
    """Return a piece; only the last one of a body ends the deflate stream."""
    is_long = len(text) > _MAX_SHORT_BYTES
    return Piece(
        text=text,
        stored=deflated(text, last=last) if last or is_long else b"",
        crc=checksum(text) if is_long else 0,
        shift=shift(len(text)) if is_long else 0,
        series=text.count(b"\n") - text.count(b"\n#") - text.startswith(b"#"),
        cut_count=count_cut_labels(text),
    )


Page = tuple[Piece, ...]
"""The text of a collector, empty without series."""


FIRST_BYTES = 64 * 1024 + 1
"""The length of a body's first slice: just enough for the transport to pause. The slice
is sent with the headers, so each client gets a copy of it, but not of later slices."""


class Payload(Struct, frozen=True):
    """The body of one response, in slices that all responses share."""

    slices: tuple[bytes, ...]
    length: int


_MAX_WHOLE_BYTES = 256 * 1024
"""Bytes up to which a text is taken as a whole. It is joined for each scrape: no
account keeps its text twice. It is compressed once for all scrapes, which takes a
millisecond; compressed in pieces, the text would be 50 % longer."""


class JoinedPages(Struct, frozen=True, dict=True):
    """All pages at one instant, in the order of the collectors.

    A form that is kept is computed for the first scrape that needs it.
    """

    pieces: tuple[Piece, ...]
    crc: int

    @property
    def is_small(self) -> bool:
        return self.text_length <= _MAX_WHOLE_BYTES

    @cached_property
    def text_slices(self) -> tuple[bytes, ...]:
        return _split_first(p.text for p in _merged(self.pieces))

    @cached_property
    def text_length(self) -> int:
        return sum(len(p.text) for p in self.pieces)

    @cached_property
    def deflated_slices(self) -> tuple[bytes, ...]:
        """The slices of a gzip member, without its end."""
        if self.is_small:
            packed = [deflated(self._whole_text())]
        else:
            packed = [p.deflated for p in _merged(self.pieces)]
        start, *rest = packed
        return _split_first([_GZIP_HEADER + start, *rest])

    @cached_property
    def deflated_length(self) -> int:
        return sum(map(len, self.deflated_slices))

    def plain(self, tail: Piece) -> Payload:
        slices = (
            _split_first([self._whole_text()]) if self.is_small else self.text_slices
        )
        return Payload((*slices, tail.text), self.text_length + len(tail.text))

    def gzipped(self, tail: Piece) -> Payload:
        """Return one gzip member (RFC 1952): header, pieces, checksum, length."""
        size = (self.text_length + len(tail.text)) & 0xFFFFFFFF
        end = tail.deflated + struct.pack("<LL", tail.checksum_after(self.crc), size)
        return Payload((*self.deflated_slices, end), self.deflated_length + len(end))

    def _whole_text(self) -> bytes:
        return b"".join([p.text for p in self.pieces])


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield long pieces, and some short ones in a row as one: most families are short.

    A slice of short ones is not longer than one of a long piece.
    """
    for is_long, run in groupby(pieces, lambda p: bool(p.stored)):
        if is_long:
            yield from run
            continue
        while some := tuple(islice(run, PIECE_BYTES // _MAX_SHORT_BYTES)):
            text = b"".join([p.text for p in some])
            yield Piece(text=text, stored=b"", crc=0, shift=0, series=0, cut_count=0)


def _split_first(slices: Iterable[bytes]) -> tuple[bytes, ...]:
    start, rest = b"", iter(slices)
    for slice_ in rest:
        start += slice_
        if len(start) >= FIRST_BYTES:
            break
    return tuple(filter(None, (start[:FIRST_BYTES], start[FIRST_BYTES:], *rest)))


_MAX_CACHED_FILTERS = 16
"""The maximum number of cached collector filters. Each takes 1 MiB."""


class Pages:
    """The newest page of each collector."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._pages: dict[str, Page] = dict.fromkeys(names, ())
        self._wholes: dict[frozenset[str] | None, JoinedPages] = {}

    def publish(self, name: str, page: Page) -> None:
        """Replace a collector's page; an empty one withdraws it."""
        self._pages[name] = page
        self._wholes.clear()

    def series(self) -> dict[str, int]:
        return {name: sum(p.series for p in page) for name, page in self._pages.items()}

    def lengths(self) -> dict[str, int]:
        return {
            name: sum(len(p.text) for p in page) for name, page in self._pages.items()
        }

    def cut_count(self) -> int:
        return sum(p.cut_count for page in self._pages.values() for p in page)

    def whole(self, names: frozenset[str] | None = None) -> JoinedPages:
        """Return the pages of some collectors, or of all, joined and cached."""
        joined = self._wholes.get(names)
        if joined is None:
            if len(self._wholes) >= _MAX_CACHED_FILTERS:
                self._wholes.clear()
            joined = self._wholes[names] = _joined(
                tuple(
                    p
                    for name, page in self._pages.items()
                    if names is None or name in names
                    for p in page
                )
            )
        return joined


def _joined(pieces: tuple[Piece, ...]) -> JoinedPages:
    joined = 0
    for p in pieces:
        joined = p.checksum_after(joined)
    return JoinedPages(pieces=pieces, crc=joined)

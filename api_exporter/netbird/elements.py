"""A long JSON array in pieces, so that nothing takes long and little is held at once.

Where one record ends and the next begins there stands `},{` and, nearly always, the key
that the first record begins with. What is JSON by itself up to such a place is a right
piece: inside of a record brackets would be open, and a quote in a string is escaped.
"""

import re
from collections.abc import Generator, Iterator

import msgspec

from api_exporter.ports import UpstreamError

FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)
"""All that msgspec raises for hostile input: its errors, bad UTF-8, deep nesting."""

LONG = 256 * 1024
"""Bytes from which on a body is read in pieces of that length: ten milliseconds' work
where they are made to hurt, else hardly one."""

_LONGEST = 8 * 1024 * 1024
"""Bytes of a piece: a group of a hundred thousand peers has six million."""

_MOST_VALUES = 400_000
"""Values in a long piece: such a group has three hundred thousand."""

_SPACES = b" " * 65536
"""In a long piece: nothing takes longer to read, and no record has so many in a row."""

_SHORTEST = 32
"""Bytes of an element of a long body, on average, at least: records have hundreds."""

_HEAD = re.compile(rb'\s{0,9}\[(\s{0,9})(\{\s{0,9}(?:"[^"\\]{0,99}"\s?:)?)')

_DECODER = msgspec.json.Decoder(list[msgspec.Raw] | None)

Elements = list[msgspec.Raw]


def elements(body: bytes) -> Iterator[Elements | None]:
    """One piece after the other; None for `null`, empty where there is but a pause.

    Raises UpstreamError where it is no array, or a long one of what cannot be records.
    """
    if len(body) <= LONG:
        yield _decoded(body)
        return
    head = _HEAD.match(body)
    if head is None:
        raise UpstreamError("decode", "a long answer that is no list of records")
    between = b"}," + head[1] + head[2]
    if body.find(between, 0, _LONGEST) < 0:
        between = b"}, " + head[2]
    start, count = body.index(b"[") + 1, 0
    while start < len(body):
        found, end = yield from _piece(body, between, start)
        count += len(found)
        if count * _SHORTEST > end:
            raise UpstreamError("decode", "a list of something shorter than records")
        yield found
        start = end + 1


def _piece(
    body: bytes, between: bytes, start: int
) -> Generator[Elements, None, tuple[Elements, int]]:
    """The elements from a place on, and where the comma behind them stands."""
    after, skipped = start + LONG, 1
    while True:
        end = body.find(between, after, start + _LONGEST) + 1 or len(body)
        if end > start + _LONGEST:
            raise UpstreamError("decode", f"a record longer than {_LONGEST} bytes")
        closing = b"]" if end < len(body) else b""
        text = b"".join((b"[", memoryview(body)[start:end], closing))
        if len(text) > 2 * LONG:
            if text.count(b",") > _MOST_VALUES:
                raise UpstreamError("decode", "a record of too many values")
            if _SPACES in text:
                raise UpstreamError("decode", "a record of too much white space")
        try:
            return _decoded(text, start - 1) or [], end
        except UpstreamError:
            if end == len(body):
                raise
        yield []
        # That was inside of a record, which ends behind the end of a list in it.
        after = body.find(b"]", end + skipped, start + _LONGEST)
        if after < 0:
            after = len(body)
        skipped *= 4


def _decoded(text: bytes, start: int = 0) -> Elements | None:
    try:
        found: Elements | None = _DECODER.decode(text)
    except FAILURES as error:
        where = f", counted from byte {start}" if start else ""
        raise UpstreamError("decode", f"{error}{where}") from None
    return found

"""A splitter of long JSON arrays: nothing takes long and little is held at once.

Where one record ends and the next begins there stands `},{` and, nearly always, the key
that the first record begins with. What is JSON by itself up to such a place is a right
piece: inside of a record brackets would be open, and a quote in a string is escaped.
"""

import re
from collections.abc import Generator, Iterator
from typing import TypeVar

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

_MOST_STEPS = 2_000_000
"""Places of a body that are looked at for the ends of such records: seconds, in all."""

_STEP = 256
"""What one costs beside the bytes that it reads, in bytes."""

LEFT_OUT = msgspec.Raw(b"")
"""Stands for a record that is too long, or has too many values."""

_SHORTEST = 32
"""Bytes of an element of a long body, on average, at least: records have hundreds."""

_HEAD = re.compile(rb'\s{0,9}\[(\s{0,9})(\{\s{0,9}(?:"[^"\\]{0,99}"\s?:)?)')

_OUTSIDE = re.compile(rb'(?:[^"{}\[\]]{1,999}|"[^"\\]{0,99}"){0,99}')
"""What neither opens nor closes anything, with short strings."""

_INSIDE = re.compile(rb'(?:[^"\\]{1,999}|\\.){0,99}', re.DOTALL)
"""The same in a string."""

_COMMA = re.compile(rb"\s{0,99}(,|\]\s{0,99}\Z)")

_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
"""The escape of half a character, where each backslash begins an escape."""

_DEEPEST = 100
"""Levels of a record that is kept where another one is nested too deeply."""

_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}]', re.DOTALL)
"""A string, or a bracket."""

_MARKS = 4096
"""Strings and brackets that are looked at between two places to pause."""

T = TypeVar("T")

_DECODER: msgspec.json.Decoder[list[msgspec.Raw] | None] = msgspec.json.Decoder(
    list[msgspec.Raw] | None
)

Elements = list[msgspec.Raw]


def elements(body: bytes) -> Generator[Elements | None, None, None]:
    """One piece after the other; None for `null`, empty where there is but a pause.

    A record that is too long is LEFT_OUT.

    Raises UpstreamError where it is no array, or a long one of what cannot be records.
    """
    if len(body) <= LONG:
        yield (yield from _decoded(body))
        return
    head = _HEAD.match(body)
    if head is None:
        raise UpstreamError("decode", "a long response that is not a list of records")
    between = b"}," + head[1] + head[2]
    if body.find(between, 0, _LONGEST) < 0:
        between = b"}, " + head[2]
    start, count, steps = body.index(b"[") + 1, 0, iter(range(_MOST_STEPS))
    while start < len(body):
        try:
            found, end = yield from _piece(body, between, start)
        except _TooLong as error:
            try:
                found, end = yield from _one_by_one(body, start, steps)
            except UpstreamError:
                raise error from None
        count += len(found)
        if count * _SHORTEST > end:
            raise UpstreamError(
                "decode", "the elements of the list are too short for records"
            )
        yield found
        start = end + 1


def _piece(
    body: bytes, between: bytes, start: int
) -> Generator[Elements, None, tuple[Elements, int]]:
    """The elements from a place on, and where the comma behind them stands."""
    after, skipped = start + LONG, 1
    while True:
        end = body.find(between, after, start + _LONGEST) + 1 or len(body)
        _check(end - start)
        closing = b"]" if end < len(body) else b""
        text = b"".join((b"[", memoryview(body)[start:end], closing))
        _check(len(text), text)
        try:
            return (yield from _decoded(text, start - 1)) or [], end
        except UpstreamError:
            if end == len(body):
                raise
        yield []
        # That was inside of a record, which ends behind the end of a list in it.
        after = body.find(b"]", end + skipped, start + _LONGEST)
        if after < 0:
            after = len(body)
        skipped *= 4


class _TooLong(UpstreamError):
    """A record takes too long to be read."""


def _check(length: int, text: bytes = b"") -> None:
    if length > _LONGEST:
        raise _TooLong("decode", f"a record has more than {_LONGEST} bytes")
    if length > 2 * LONG:
        if text.count(b",") > _MOST_VALUES:
            raise _TooLong("decode", "a record has too many values")
        if _SPACES in text:
            raise _TooLong("decode", "a record has too much white space")


def _one_by_one(
    body: bytes, start: int, steps: Iterator[int]
) -> Generator[Elements, None, tuple[Elements, int]]:
    """The same as `_piece`, up to a record that is left out."""
    found: Elements = []
    while True:
        end = yield from _end(body, start, steps)
        comma = _COMMA.match(body, end)
        if comma is None:
            raise UpstreamError("decode", "no comma after a record")
        last = comma[1] != b","
        after = len(body) if last else comma.start(1)
        try:
            _check(end - start)
            text = b"[%b]" % body[start:end]
            _check(len(text), text)
        except _TooLong:
            return [*found, LEFT_OUT], after
        found += (yield from _decoded(text, start - 1)) or []
        if last:
            return found, after
        start = after + 1


def _end(body: bytes, at: int, steps: Iterator[int]) -> Generator[Elements, None, int]:
    """Where the record ends that begins at a place."""
    depth, quoted, pause = 0, False, at + LONG
    for _ in steps:
        if at > pause:
            yield []
            pause = at + LONG
        pause -= _STEP
        run = (_INSIDE if quoted else _OUTSIDE).match(body, at)
        assert run is not None  # it may be empty
        at = run.end()
        mark = body[at : at + 1]
        if mark == b'"':
            quoted = not quoted
        elif not quoted and mark in {b"{", b"["}:
            depth += 1
        elif not quoted and mark in {b"}", b"]"}:
            depth -= 1
            if depth <= 0:
                return at + 1
        else:  # the run goes on
            at -= 1
        at += 1
        if at >= len(body):
            break
    raise UpstreamError("decode", "the last record is incomplete")


def mend(text: bytes) -> bytes:
    """JSON of the same length in which U+FFFD stands for halves of characters.

    A longer text stays as it is: it would take long.
    """
    if len(text) > LONG or b"\0" in text:
        return text
    escapes = text.replace(b"\\\\", b"\0\0")  # of backslashes, out of the way
    return _LONE_SURROGATE.sub(rb"\\ufffd", escapes).replace(b"\0\0", b"\\\\")


def _mended(text: bytes) -> Generator[Elements, None, bytes]:
    """The same of a long text. No escape goes on behind a comma."""
    parts, start = [], 0
    while start < len(text):
        yield []
        end = text.rfind(b",", start, start + LONG) + 1 or len(text)
        parts.append(mend(text[start:end]))
        start = end
    yield []
    return b"".join(parts)


def _without_deep(text: bytes, level: int) -> Generator[Elements, None, bytes]:
    """The same with `null` for each value at a level that is nested too deeply.

    Args:
        level: brackets around such a value.
    """
    parts: list[bytes] = []
    depth = deepest = start = end = 0
    for number, mark in enumerate(_MARK.finditer(text)):
        if number % _MARKS == 0:
            yield []
        if mark[0] in {b"{", b"["}:
            if depth == level:
                start, deepest = mark.start(), 0
            depth += 1
            deepest = max(deepest, depth)
        elif mark[0] in {b"}", b"]"}:
            depth -= 1
            if depth == level and deepest > _DEEPEST:
                parts += text[end:start], b"null"
                end = mark.end()
    return b"".join([*parts, text[end:]])


def decoded(
    decoder: msgspec.json.Decoder[T], text: bytes, level: int
) -> Generator[Elements, None, T]:
    """Decode JSON after halves of characters and deep values are replaced.

    Raises one of FAILURES.

    Args:
        level: brackets around a record: one that is nested too deeply becomes `null`.
    """
    while True:
        try:
            return decoder.decode(text)
        except FAILURES as error:
            repaired = text
            if isinstance(error, RecursionError):
                repaired = yield from _without_deep(text, level)
            elif b"\\ud" in text or b"\\uD" in text:
                repaired = yield from _mended(text)
            if repaired == text:
                raise
            text = repaired


def _decoded(text: bytes, start: int = 0) -> Generator[Elements, None, Elements | None]:
    try:
        return (yield from decoded(_DECODER, text, 1))
    except FAILURES as error:
        where = f", counted from byte {start}" if start else ""
        raise UpstreamError("decode", f"{error}{where}") from None

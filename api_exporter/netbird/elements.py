"""A splitter of long JSON arrays, so that only one piece is decoded at once.

The decoder holds the interpreter during a call, so a long array is split into pieces.
Between two records stands `},{` and, nearly always, the first key of the first record.
Text up to such a place is a valid piece if it is JSON by itself. Inside a record
brackets would be open, and a quote in a string is escaped.

Errors are in words of the response, without those of Python.
"""

import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from api_exporter.ports import UpstreamError

DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
"""All errors of msgspec for hostile input: its own, bad UTF-8, deep nesting."""

LIST_PIECE_BYTES = 1024 * 1024
"""The size of a piece in bytes. The decoder takes one to three milliseconds for it."""

_MAX_RECORD = 32 * 1024 * 1024
"""The maximum bytes of one record. A group of a hundred thousand peers has 6 MB."""

_MAX_VALUES = 400_000
"""The maximum number of values in a long piece. The same group has 300,000."""

_MIN_ELEMENT_BYTES = 32
"""The minimum average bytes of the elements of a long body. Records have hundreds."""

JSON_SPACE = b" \t\n\r"
"""The white space of JSON. Python's has vertical tabs and form feeds, too."""

# The decoder sees all but what stands before the bracket.
_HEAD = re.compile(
    rb'[%b]{0,9}\[(\s{0,9})(\{\s{0,9}(?:"[^"\\]{0,99}"\s?:)?)' % JSON_SPACE
)

_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
"""The escape of a lone surrogate, in a text where each backslash begins an escape."""

_MAX_DEPTH = 100
"""In JSON that is too deep for the decoder, `null` replaces values deeper than this."""

_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)
"""A string, with or without an end, or a bracket."""

T = TypeVar("T")

_DECODER: msgspec.json.Decoder[list[msgspec.Raw] | None] = msgspec.json.Decoder(
    list[msgspec.Raw] | None
)

Elements = list[msgspec.Raw]


def elements(body: bytes) -> Iterator[Elements | None]:
    """Yield the elements of a JSON array in pieces; None for `null`.

    Raise UpstreamError for anything else, and for a long array of short elements.
    """
    if len(body) <= LIST_PIECE_BYTES:
        yield _decode_array(body)
        return
    head = _HEAD.match(body)
    if head is None:
        raise UpstreamError("decode", "the response is long and not a list of records")
    separator = b"}," + head[1] + head[2]
    if body.find(separator, 0, _MAX_RECORD) < 0:
        separator = b"}, " + head[2]
    marks = separator, b"}," + head[1] + b"{"
    start, count = body.index(b"[") + 1, 0
    while start < len(body):
        found, end = _split(body, marks, start)
        count += len(found)
        if count * _MIN_ELEMENT_BYTES > end:
            raise UpstreamError(
                "decode", "the elements of the list are too short for records"
            )
        yield found
        start = end + 1


def _split(body: bytes, marks: tuple[bytes, ...], start: int) -> tuple[Elements, int]:
    """Return the elements of a piece, and the place of the comma behind the piece.

    Args:
        marks: texts that may stand between two records, the likeliest first.
    """
    after, skipped = start + LIST_PIECE_BYTES, 1
    while True:
        found = (body.find(mark, after, start + _MAX_RECORD) + 1 for mark in marks)
        end = next(filter(None, found), len(body))
        if end - start > _MAX_RECORD:
            raise UpstreamError("decode", f"a record has more than {_MAX_RECORD} bytes")
        if (
            end - start > 2 * LIST_PIECE_BYTES
            and body.count(b",", start, end) > _MAX_VALUES
        ):
            raise UpstreamError("decode", "a record has too many values")
        closing = b"]" if end < len(body) else b""
        text = b"".join((b"[", memoryview(body)[start:end], closing))
        try:
            return _decode_array(text, start - 1) or [], end
        except UpstreamError:
            if end == len(body):
                raise
        # The mark was inside a record. Continue behind the next end of a list.
        after = body.find(b"]", end + skipped, start + _MAX_RECORD)
        if after < 0:
            after = len(body)
        skipped *= 4


_MEND_BYTES = 64 * 1024
"""Bytes of text in which lone surrogates are replaced in one step."""


def replace_surrogates(text: bytes) -> bytes:
    """Return JSON of the same length with U+FFFD in place of lone surrogates.

    No escape crosses a comma. A long text is returned unchanged: it would take long.
    """
    if len(text) > 2 * LIST_PIECE_BYTES or b"\0" in text:
        return text
    parts, start = [], 0
    while start < len(text):
        end = text.find(b",", start + _MEND_BYTES) + 1 or len(text)
        escapes = text[start:end].replace(b"\\\\", b"\0\0")  # escaped backslashes
        mended = _LONE_SURROGATE.sub(rb"\\ufffd", escapes)
        parts.append(mended.replace(b"\0\0", b"\\\\"))
        start = end
    return b"".join(parts)


def _replace_deep(text: bytes, level: int) -> bytes:
    """Return the text with `null` for each value at `level` that is too deep."""
    parts: list[bytes] = []
    depth = deepest = start = end = 0
    for mark in _MARK.finditer(text):
        if mark[0] in {b"{", b"["}:
            if depth == level:
                start, deepest = mark.start(), 0
            depth += 1
            deepest = max(deepest, depth)
        elif mark[0] in {b"}", b"]"}:
            depth -= 1
            if depth == level and deepest > _MAX_DEPTH:
                parts += text[end:start], b"null"
                end = mark.end()
    return b"".join([*parts, text[end:]])


def decode_leniently(decoder: msgspec.json.Decoder[T], text: bytes, level: int) -> T:
    """Decode JSON, if necessary with text replaced; raise one of DECODE_ERRORS.

    Args:
        level: the number of brackets around a record.
    """
    while True:
        try:
            return decoder.decode(text)
        except DECODE_ERRORS as error:
            repaired = text
            if len(text) > 2 * LIST_PIECE_BYTES:  # it would take long
                raise
            if isinstance(error, RecursionError):
                repaired = _replace_deep(text, level)
            elif b"\\ud" in text or b"\\uD" in text:
                repaired = replace_surrogates(text)
            if repaired == text:
                raise
            text = repaired


_TYPE = re.compile(r"Expected `(?P<wanted>.+?)`(?:, got `(?P<got>.+?)`)?(?: - at |$)")
_MISSING = re.compile(r"Object missing required field `(?P<name>.+?)`")
_MALFORMED = re.compile(r"JSON is malformed: .* \(byte (?P<byte>\d+)\)")
_TOO_LONG = re.compile(r"Expected `.+?` of length <= (?P<length>\d+)")
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(?P<path>.*)`$")

_JSON_TYPES = {
    "bool": "a boolean",
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "datetime": "a time",
}


def decode_problem(error: Exception) -> str:
    """Return what is wrong with a response, given one of `elements.DECODE_ERRORS`."""
    text = str(error)
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    # The latter is msgspec 0.23 and newer.
    if isinstance(error, UnicodeDecodeError) or text == "Invalid UTF-8 encoded string":
        return "the text is not UTF-8"
    if not isinstance(error, msgspec.MsgspecError):
        return text  # a ValueError of this package
    if text == "Input data was truncated":
        return "the JSON is cut off"
    if found := _MALFORMED.match(text):
        return f"this is not JSON, from byte {found['byte']} on"
    return _form_problem(text)


def _form_problem(text: str) -> str:
    """Return which field of valid JSON has another form than expected."""
    place = _PLACE.search(text)
    what = place["path"] if place and place["path"] else "the JSON"
    if found := _MISSING.match(text):
        parent = f" of {place['path']}" if place and place["path"] else ""
        return f"the field {found['name']}{parent} is missing"
    if (found := _TYPE.match(text)) and found["got"]:
        kinds = [*found["wanted"].split(" | "), found["got"]]
        *wanted, got = (_JSON_TYPES.get(kind, kind) for kind in kinds)
        return f"{what} is {got}, not {' or '.join(wanted)}"
    if found := _TOO_LONG.match(text):
        return f"{what} is longer than {found['length']}"
    if text.startswith("Invalid RFC3339"):
        return f"{what} is not a time"
    return f"{what} has a value that is not allowed"


def _decode_array(text: bytes, start: int = 0) -> Elements | None:
    try:
        return decode_leniently(_DECODER, text, 1)
    except DECODE_ERRORS as error:
        where = f", counted from byte {start}" if start else ""
        raise UpstreamError("decode", f"{decode_problem(error)}{where}") from None

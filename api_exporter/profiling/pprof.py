"""The profile format of google/pprof: protocol buffers, gzipped.

Of protocol buffers, it has the needed part: numbers, bytes, and nested messages.
Field numbers are those of pprof's `profile.proto`.
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Frame(NamedTuple):
    """A line of source code in a stack."""

    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]
"""Frames of a stack, leaf first."""


def encode(
    types: Sequence[tuple[str, str]],
    samples: Mapping[Stack, Sequence[int]],
    *,
    period: int,
    started: float,
    duration: int,
) -> bytes:
    """Return the gzipped profile.

    Args:
        types: name and unit of each value of a sample; tools show the last one.
        samples: the values of each stack, none of them negative.
        period: the amount of the last type between two samples.
        started: seconds since the epoch.
        duration: nanoseconds.
    """
    strings = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    locations: dict[Frame, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    def value_type(field: int, name: str, unit: str) -> bytes:
        return _bytes(field, _number(1, string(name)) + _number(2, string(unit)))

    parts = [value_type(1, *kind) for kind in types]
    for stack, values in samples.items():
        # 0 means "none" in the tables of locations and functions.
        at = [locations.setdefault(frame, len(locations) + 1) for frame in stack]
        parts.append(_bytes(2, _numbers(1, at) + _numbers(2, values)))
    # One mapping that claims all symbols; otherwise tools search for a binary.
    mapping = _number(1, 1) + _number(5, string("api-exporter"))
    parts.append(_bytes(3, mapping + _number(7, 1) + _number(8, 1) + _number(9, 1)))
    for frame, location in locations.items():
        function = functions.setdefault(frame[:2], len(functions) + 1)
        line = _bytes(4, _number(1, function) + _number(2, frame.line))
        parts.append(_bytes(4, _number(1, location) + _number(2, 1) + line))
    for (name, file), function in functions.items():
        named = _number(2, string(name)) + _number(3, string(name))
        parts.append(_bytes(5, _number(1, function) + named + _number(4, string(file))))
    parts += [
        _number(9, int(started * 1e9)),
        _number(10, duration),
        value_type(11, *types[-1]),
        _number(12, period),
        _number(14, string(types[-1][0])),
    ]
    # The strings come last: all other messages add to them.
    parts += [_bytes(6, text.encode("utf-8", "replace")) for text in strings]
    return gzip.compress(b"".join(parts), 6, mtime=0)


def _number(field: int, value: int) -> bytes:
    """Encode a field of type varint; a missing field means 0."""
    return varint(field << 3) + varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    """Encode a field of type string, bytes or message, even if it is empty."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def _numbers(field: int, values: Iterable[int]) -> bytes:
    """Encode a repeated field of type varint, packed."""
    return _bytes(field, b"".join([varint(value) for value in values]))


def varint(value: int) -> bytes:
    """Encode 7 bits a byte, the lowest first; a top bit means that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

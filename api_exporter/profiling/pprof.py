"""The profile format of google/pprof: protocol buffers, gzipped.

Of protocol buffers, it has the needed part: numbers, bytes, and nested messages.
Field numbers are those of pprof's `profile.proto`.
"""

import gzip
import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct


class Frame(NamedTuple):
    """A line of source code in a stack."""

    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]
"""Frames of a stack, leaf first."""


class ValueType(NamedTuple):
    """The name and unit of a measured value."""

    name: str
    unit: str


class ProfileSample(NamedTuple):
    """The values of one stack, one for each type, none of them negative."""

    stack: Stack
    values: tuple[int, ...]
    thread: str = ""


class Profile(Struct, frozen=True, kw_only=True):
    """The content of a profile.

    Attributes:
        types: the types of each sample's values; tools show the last one by default.
        period: the amount of the last type between two samples.
        duration: nanoseconds; 0 for a profile without a duration.
    """

    types: tuple[ValueType, ...]
    samples: Iterable[ProfileSample]
    period: int
    duration: int = 0
    comment: str = ""


def encode(profile: Profile, started: float) -> bytes:
    """Return the gzipped profile.

    Args:
        started: seconds since the epoch.
    """
    tables = _Tables()
    default = profile.types[-1]
    head = [_bytes(1, tables.value_type(kind)) for kind in profile.types]
    samples = [_bytes(2, tables.sample(sample)) for sample in profile.samples]
    tail = [
        _number(9, int(started * 1e9)),
        _number(10, profile.duration),
        _bytes(11, tables.value_type(default)),
        _number(12, profile.period),
        _numbers(13, [tables.string(profile.comment)] if profile.comment else []),
        _number(14, tables.string(default.name)),
    ]
    # The tables come last: all other messages add to them.
    shared = tables.encode()
    return gzip.compress(b"".join((*head, *samples, *shared, *tail)), 6, mtime=0)


class _Tables:
    """Tables of strings, functions and locations; samples refer to them by number."""

    def __init__(self) -> None:
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Frame, int] = {}

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def value_type(self, kind: ValueType) -> bytes:
        return _number(1, self.string(kind.name)) + _number(2, self.string(kind.unit))

    def sample(self, sample: ProfileSample) -> bytes:
        encoded = _numbers(1, [self._location(frame) for frame in sample.stack])
        encoded += _numbers(2, sample.values)
        if sample.thread:
            label = _number(1, self.string("thread"))
            label += _number(2, self.string(sample.thread))
            encoded += _bytes(3, label)
        return encoded

    def _location(self, frame: Frame) -> int:
        # 0 means "none" in these two tables.
        return self._locations.setdefault(frame, len(self._locations) + 1)

    def _function(self, frame: Frame) -> int:
        key = (frame.function, frame.file)
        return self._functions.setdefault(key, len(self._functions) + 1)

    def encode(self) -> list[bytes]:
        """Return the encoded tables, ordered so that each adds only to later ones."""
        # One mapping that claims all symbols; otherwise tools search for a binary.
        mapping = _number(1, 1) + _number(5, self.string("api-exporter"))
        mapping += _number(7, 1) + _number(8, 1) + _number(9, 1)
        encoded = [_bytes(3, mapping)]
        for frame, location in self._locations.items():
            line = _number(1, self._function(frame)) + _number(2, frame.line)
            message = _number(1, location) + _number(2, 1)
            message += _number(3, address(frame)) + _bytes(4, line)
            encoded.append(_bytes(4, message))
        for (name, file), function in self._functions.items():
            named = self.string(name)
            message = _number(1, function) + _number(2, named) + _number(3, named)
            encoded.append(_bytes(5, message + _number(4, self.string(file))))
        texts = [text.encode("utf-8", "replace") for text in self._strings]
        return [*encoded, *[_bytes(6, text) for text in texts]]


def address(frame: Frame) -> int:
    """Return a number that is the same for a line in all profiles."""
    name = repr(tuple(frame)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=6).digest(), "big")


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

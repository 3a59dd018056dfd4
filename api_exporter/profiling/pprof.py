"""The profile format of google/pprof: protocol buffers, gzipped. Pure.

Of protocol buffers it knows what the format needs: numbers, bytes, and messages in
messages. Field numbers are those of pprof's `profile.proto`.
"""

import gzip
import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct


class Frame(NamedTuple):
    """A line of source code that a stack goes through."""

    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]
"""Leaf first."""


class ValueType(NamedTuple):
    """What is counted, and in which unit."""

    name: str
    unit: str


class Sample(NamedTuple):
    """What was measured for one stack, a value for each type, none of them negative."""

    stack: Stack
    values: tuple[int, ...]
    thread: str = ""


class Profile(Struct, frozen=True, kw_only=True):
    """All that was measured.

    Attributes:
        types: of each sample's values; tools show the last one unless asked otherwise.
        period: how much of the last type lies between two samples.
        duration: nanoseconds; 0 for what has none.
    """

    types: tuple[ValueType, ...]
    samples: Iterable[Sample]
    period: int
    duration: int = 0
    comment: str = ""


def encode(profile: Profile, started: float) -> bytes:
    """The profile as it is sent.

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
    # Last, because all of the others add to them.
    shared = tables.encode()
    return gzip.compress(b"".join((*head, *samples, *shared, *tail)), 6, mtime=0)


class _Tables:
    """What samples refer to by number. Everything is told once."""

    def __init__(self) -> None:
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Frame, int] = {}

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def value_type(self, kind: ValueType) -> bytes:
        return _number(1, self.string(kind.name)) + _number(2, self.string(kind.unit))

    def sample(self, sample: Sample) -> bytes:
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
        """The tables themselves, in such an order that each adds only to later ones."""
        # One mapping that claims to have all symbols, or tools would look for a binary.
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
    """A number that stands for the same line in all profiles."""
    name = repr(tuple(frame)).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=6).digest(), "big")


def _number(field: int, value: int) -> bytes:
    """A field of type varint; 0 is what its absence means."""
    return varint(field << 3) + varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    """A field of type string, bytes or message; not left out when it is empty."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def _numbers(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of type varint, packed."""
    return _bytes(field, b"".join([varint(value) for value in values]))


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

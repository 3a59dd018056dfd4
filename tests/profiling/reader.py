"""A minimal reader of pprof's format, written from its description only."""

import gzip
from collections.abc import Iterator

from msgspec import Struct

from api_exporter.profiling.pprof import Frame

Field = tuple[int, int | bytes]


class Read(Struct, frozen=True, kw_only=True):
    """The content of a profile.

    Attributes:
        types: name and unit.
        samples: stack and values.
    """

    types: list[tuple[str, str]]
    samples: list[tuple[tuple[Frame, ...], tuple[int, ...]]]
    period_type: tuple[str, str]
    period: int
    started: int
    duration: int
    default_type: str

    def by_leaf(self) -> dict[str, int]:
        """Return the sum of the last value for each function on top of a stack."""
        sums: dict[str, int] = {}
        for stack, values in self.samples:
            name = stack[0].function
            sums[name] = sums.get(name, 0) + values[-1]
        return sums


def read(body: bytes) -> Read:
    """Decode a gzipped profile. Raise an exception for a reference to nothing."""
    fields = list(_fields(gzip.decompress(body)))
    strings = [value.decode() for value in _messages(fields, 6)]
    assert strings[0] == ""
    functions = {
        _one(function, 1): (strings[_one(function, 2)], strings[_one(function, 4)])
        for function in _parsed(fields, 5)
    }
    mappings = {_one(mapping, 1) for mapping in _parsed(fields, 3)}
    for mapping in _parsed(fields, 3):  # it has functions, files and lines
        assert strings[_one(mapping, 5)] == "api-exporter"
        assert [_one(mapping, field) for field in (7, 8, 9)] == [1, 1, 1]
    frames = {}
    for location in _parsed(fields, 4):
        assert _one(location, 2) in mappings
        (line,) = _parsed(location, 4)
        frames[_one(location, 1)] = Frame(*functions[_one(line, 1)], _one(line, 2))
    assert 0 not in {*functions, *frames, *mappings}

    def value_type(message: list[Field]) -> tuple[str, str]:
        return strings[_one(message, 1)], strings[_one(message, 2)]

    return Read(
        types=[value_type(kind) for kind in _parsed(fields, 1)],
        samples=[
            (
                tuple(frames[number] for number in _packed(sample, 1)),
                tuple(_packed(sample, 2)),
            )
            for sample in _parsed(fields, 2)
        ],
        period_type=value_type(_parsed(fields, 11)[0]),
        period=_one(fields, 12),
        started=_one(fields, 9),
        duration=_one(fields, 10),
        default_type=strings[_one(fields, 14)],
    )


def varint(encoded: bytes, start: int = 0) -> tuple[int, int]:
    """Return a number and the start of the next one."""
    value = shift = 0
    for place in range(start, len(encoded)):
        value |= (encoded[place] & 0x7F) << shift
        shift += 7
        if encoded[place] < 0x80:
            return value, place + 1
    raise ValueError("a number without an end")


def _fields(message: bytes) -> Iterator[Field]:
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        value, place = varint(message, place)
        if key & 7 == 0:
            yield key >> 3, value
            continue
        assert key & 7 == 2
        yield key >> 3, message[place : place + value]
        place += value
        assert place <= len(message)


def _messages(fields: list[Field], number: int) -> list[bytes]:
    return [v for field, v in fields if field == number and isinstance(v, bytes)]


def _parsed(fields: list[Field], number: int) -> list[list[Field]]:
    return [list(_fields(message)) for message in _messages(fields, number)]


def _packed(fields: list[Field], number: int) -> list[int]:
    values = []
    for message in _messages(fields, number):
        place = 0
        while place < len(message):
            value, place = varint(message, place)
            values.append(value)
    return values


def _one(fields: list[Field], number: int) -> int:
    """Return the only number of a field, 0 if there is none."""
    values = [v for field, v in fields if field == number and isinstance(v, int)]
    assert len(values) <= 1
    return values[0] if values else 0

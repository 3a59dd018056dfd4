"""Fields of JSON objects, as the rules of `docs/metrics.md` read them.

`null` has been removed, and records with fields of wrong types have been rejected. So
each function only defines the value of a missing field.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

Record = Mapping[str, object]

Known = Mapping[str, list[Record]]
"""The records of each known resource."""

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?"
    r"(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)

_ZERO = re.compile(r"000[01]-\d\d-\d\d[Tt]\d\d:", re.ASCII)
"""Go's zero time, which means "never" with any seconds and zone."""


def text(record: Record, name: str) -> str:
    value = record.get(name, "")
    assert isinstance(value, str)
    return value


def flag(record: Record, name: str) -> bool:
    value = record.get(name, False)
    assert isinstance(value, bool)
    return value


def number(record: Record, name: str) -> int:
    value = record.get(name, 0)
    assert isinstance(value, int)
    return value


def amount(record: Record, name: str) -> float:
    """Return a number that may have a fraction."""
    value = record.get(name, 0)
    assert isinstance(value, int | float)
    return float(value)


def instant(record: Record, name: str) -> Fraction | None:
    """Return seconds since 1970; None for "never"."""
    if name not in record:
        return None
    seconds = parse(text(record, name))
    if seconds is None or seconds < Fraction(1, 10**6):
        return None
    return seconds


@lru_cache(10_000)
def parse(time: str) -> Fraction | None:
    """Return the seconds since 1970 of an RFC 3339 time, to the microsecond.

    The years 0 and 1 are None: Go's zero time in any zone is in them.
    """
    if _ZERO.match(time):
        return None
    match = _TIME.fullmatch(time)
    if match is None:
        raise ValueError(time)
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = (
        match.groups()
    )
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise ValueError(time)
    there = datetime(
        int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC
    )
    since = there - datetime(1970, 1, 1, tzinfo=UTC)
    offset = 3600 * int(hours or 0) + 60 * int(minutes or 0)
    return (
        since.days * 86400
        + since.seconds
        + Fraction(round(Fraction("0" + (fraction or "")) * 10**6), 10**6)
        - (-offset if sign == "-" else offset)
    )


def own(kind: str, record: Record) -> dict[str, str]:
    """Return the labels of an object: its id and its name."""
    return {f"{kind}_id": text(record, "id"), kind: text(record, "name")}


def part(record: Record, name: str) -> Record:
    """Return an object in an object."""
    value = record.get(name, {})
    assert isinstance(value, dict)
    return value


def texts(record: Record, name: str) -> list[str]:
    """Return a list of strings as sent."""
    values = record.get(name, [])
    assert isinstance(values, list)
    return values


def ids(record: Record, name: str) -> list[str]:
    """Return a list of ids, each once."""
    return list(dict.fromkeys(texts(record, name)))


def objects(record: Record, name: str) -> list[Record]:
    """Return a list of objects as sent."""
    values = record.get(name, [])
    assert isinstance(values, list)
    return values


def distinct(elements: Iterable[Record]) -> list[Record]:
    """Return objects of a record: the last one with each id, and all without an id."""
    return list(
        {
            text(element, "id") or place: element
            for place, element in enumerate(elements)
        }.values()
    )

"""Fields and values of the NetBird API that this version does not know.

`specification.json` has the known ones: those of NetBird 0.77.1, and others that
decoders read. `tests/netbird/specification.py` makes it. There `{}` is an object with
its fields, `[]` has the values of an enumeration, and 0 is any other value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from api_exporter.netbird.elements import DECODE_ERRORS

SPECIFICATION = Path(__file__).with_name("specification.json")

_SAMPLE = 32
_LATER_SAMPLE = 4
"""The number of records that are inspected in the first piece of a body, and in each
later one. To inspect a record costs more than to decode it.
"""

_MAX_RECORD_BYTES = 128 * 1024
"""A longer record is not inspected: that would hold the interpreter for long."""

MAX_NAMES = 20
"""The maximum number of fields, and of values, of a resource. More are not counted."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,38}")
"""A name that may be shown: no address, and too short for a token (40 characters)."""

_OTHER = "(other)"
"""In place of all other names, as a key or value may be anything."""


_OTHER_TYPE = "(another type)"
"""In place of a value of another type than that of its field."""


class Unknown(Struct, frozen=True, gc=False):
    """Unknown fields, and unknown values of enumerations with their fields.

    A field in an object of a record has the name of the object before it, and a dot.
    """

    fields: frozenset[str] = frozenset()
    values: frozenset[tuple[str, str]] = frozenset()

    def __or__(self, other: "Unknown") -> "Unknown":
        return Unknown(
            frozenset(sorted(self.fields | other.fields)[:MAX_NAMES]),
            frozenset(sorted(self.values | other.values)[:MAX_NAMES]),
        )

    def names(self) -> list[str]:
        """Return all, such as `kind` and `role=viewer`."""
        values = (f"{field}={value}" for field, value in self.values)
        return [*sorted(self.fields), *sorted(values)]


NOTHING_UNKNOWN = Unknown()


class _KnownObject(Struct, frozen=True):
    """An object's fields, and those of them with a known object or enumeration."""

    fields: frozenset[str]
    parts: Mapping[str, "_Known"]


_Known = _KnownObject | frozenset[str] | None


@cache
def _specification() -> Mapping[str, _Known]:
    found = _known(msgspec.json.decode(SPECIFICATION.read_bytes()))
    assert isinstance(found, _KnownObject)
    return found.parts


def _known(value: object) -> _Known:
    if isinstance(value, dict):
        parts = {name: _known(part) for name, part in value.items()}
        inner = {name: part for name, part in parts.items() if part is not None}
        return _KnownObject(frozenset(parts), inner)
    return frozenset(["", *value]) if isinstance(value, list) else None


class Inspector:
    """Finds unknown fields and values in a sample of a body's records.

    Args:
        now: seconds since the epoch. The sample changes with it.

    Attributes:
        is_complete: False if some records were not inspected.
    """

    def __init__(self, resource: str, now: float) -> None:
        self.is_complete = True
        self._known = _specification()[resource]
        self._now = int(now)
        self._sample = _SAMPLE
        self._fields: set[str] = set()
        self._values: set[tuple[str, str]] = set()

    @property
    def found(self) -> Unknown:
        return Unknown(frozenset(self._fields), frozenset(self._values))

    def inspect(self, records: Sequence[msgspec.Raw]) -> None:
        """Inspect records of one piece of the body; those that are no JSON are left."""
        step = len(records) // self._sample + 1
        self._sample = _LATER_SAMPLE
        sample = records[self._now % step :: step]
        self.is_complete &= step == 1
        for record in sample:
            if len(record) > _MAX_RECORD_BYTES:
                self.is_complete = False
                continue
            try:
                value = msgspec.json.decode(record)
            except DECODE_ERRORS:
                continue
            self._inspect(self._known, value, "")

    def add_wrong_types(self, names: Iterable[str]) -> None:
        """Add fields whose value is of another type than this version knows."""
        for name in names:
            if len(self._values) < MAX_NAMES:
                self._values.add((name, _OTHER_TYPE))

    def _inspect(self, known: _Known, value: object, path: str) -> None:
        for one in value if isinstance(value, list) else (value,):
            if isinstance(known, _KnownObject) and isinstance(one, dict):
                for name in one.keys() - known.fields:
                    if len(self._fields) < MAX_NAMES:
                        self._fields.add(path + _shown(name))
                for name, part in known.parts.items():
                    if name in one:
                        self._inspect(part, one[name], f"{path}{name}.")
            elif (
                isinstance(known, frozenset)
                and isinstance(one, str)
                and one not in known
                and len(self._values) < MAX_NAMES
            ):
                self._values.add((path[:-1], _shown(one)))


def _shown(name: str) -> str:
    return name if _NAME.fullmatch(name) else _OTHER

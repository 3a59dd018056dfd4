"""Fields that are only shown: without a value of the right type they are unknown.

Counts and joins need all other fields. One of another type rejects its record.
"""

from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import Struct

from api_exporter.netbird.records import SHOWN, Instant, ShownInstant


class Field(Struct, frozen=True):
    """A field of a kind of record.

    Attributes:
        record: the kind of the objects in the field; None for any other content.
    """

    name: str
    content: Any
    is_shown: bool
    record: type[Struct] | None


@cache
def record_fields(kind: type[Struct]) -> tuple[Field, ...]:
    return tuple(
        Field(f.encode_name, f.type, SHOWN in get_args(f.type), _record(f.type))
        for f in msgspec.structs.fields(kind)
    )


@cache
def instants(kind: type[Struct]) -> frozenset[str]:
    """Return the names of all times in a kind of record, and in the objects in it."""
    fields = record_fields(kind)
    own = {f.name for f in fields if f.content in {Instant, ShownInstant}}
    return frozenset(own).union(*(instants(f.record) for f in fields if f.record))


def _record(kind: Any) -> type[Struct] | None:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind
    return next(filter(None, map(_record, get_args(kind))), None)


def remove_wrong_types(record: object, kind: type[Struct], path: str = "") -> set[str]:
    """Remove shown fields of another type from a record, and return their names.

    Args:
        record: parsed JSON, which is changed.
        path: the beginning of the names, with a dot at its end.
    """
    found: set[str] = set()
    if not isinstance(record, dict):
        return found
    for field in record_fields(kind):
        if field.name not in record:
            continue
        value = record[field.name]
        if field.record is not None:
            for part in value if isinstance(value, list) else (value,):
                inner = f"{path}{field.name}."
                found |= remove_wrong_types(part, field.record, inner)
        if field.is_shown and not _converts(value, field.content):
            del record[field.name]
            found.add(path + field.name)
    return found


def _converts(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True

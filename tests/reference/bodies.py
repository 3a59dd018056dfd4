"""From parsed bodies to valid records."""

import re
from collections.abc import Mapping

from tests.reference.fields import Known, Record, text
from tests.reference.valid import FIELDS, NEVER_NULL, OBJECTS, RECORDS, ROWS, readable

_SURROGATE = re.compile("[\ud800-\udfff]")


def known(parsed: Mapping[str, object]) -> Known:
    """Return the valid records of joined lists. One with an invalid body is unknown."""
    return together(
        {name: records(name, body) for name, body in parsed.items() if name in RECORDS}
    )


def records(resource: str, body: object) -> list[Record] | None:
    """Return the valid records of a body; None for an invalid body."""
    return _object(resource, body) if resource in OBJECTS else _list(resource, body)


def together(read: Mapping[str, list[Record] | None]) -> Known:
    """Return the records of the known resources."""
    found = {name: records for name, records in read.items() if records is not None}
    if not any(user.get("is_current") for user in found.get("users", [])):
        found.pop("access_tokens", None)  # the user to request them for is unknown
    return found


def _object(resource: str, body: object) -> list[Record] | None:
    if resource == "agent_settings" and body is None:
        return [{}]
    cleaned = _clean(body)
    if not isinstance(body, dict) or not isinstance(cleaned, dict):
        return None
    # A count must be there; of other objects any field, even one that is null.
    sent = cleaned if resource == "agent_denials" else body
    is_other = FIELDS[resource].isdisjoint(sent)
    return None if is_other or not readable(resource, cleaned) else [cleaned]


def _list(resource: str, body: object) -> list[Record] | None:
    if body is None and resource not in NEVER_NULL:
        return []
    if not isinstance(body, list):
        return None
    right: list[Record] = [
        record
        for element in body
        if isinstance(record := _clean(element), dict) and readable(resource, record)
    ]
    if body and not right:
        return None
    if resource in ROWS:
        return right
    last: dict[str, Record] = {}
    for record in right:
        own = text(record, "id")
        last.pop(own, None)  # the last record determines the position
        last[own] = record
    last.pop("", None)
    return list(last.values())


def _clean(value: object) -> object:
    """Return the value without `null` and with valid characters only."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {name: _clean(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_clean(element) for element in value if element is not None]
    return value

"""Fuzz target: bodies of the API.

The first byte selects the resource, and whether the body is read in pieces.

* Only UpstreamError is raised, and no body takes more pauses than bytes.
* Lists and documents have as many records as the plain reference has.
* The same body again gives the same records, and the same objects for a list.
* A body that is read in pieces gives the same records, or is refused.
"""

import json

from api_exporter.netbird import elements
from api_exporter.netbird.bodies import (
    DecodeContext,
    Decoded,
    DocumentDecoder,
    ListDecoder,
)
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES
from tests.bodies import NOON, body
from tests.reference.bodies import known

READ = (*RESOURCES, RESOURCE_BY_NAME[CURRENT_USER])

PIECEWISE = 48
"""Bytes from which on a body is read in pieces, if the first byte says so."""

USERS = [{"id": "me", "is_current": True}]
"""A user, because tokens need one."""

SEEDS = tuple(
    bytes([place + 128 * pieces]) + text
    for place, resource in enumerate(READ)
    for text in (body(resource.name)[:4000], b"null", b"[]", b'[{"id":"a"}]')
    for pieces in (0, 1)
)


def decoded(place: int, text: bytes, before: Decoded | None = None) -> Decoded | None:
    """Return the decoded body, or None if it is refused."""
    earlier = before or Decoded(())
    context = DecodeContext(earlier.records, earlier.recognized, NOON)
    try:
        return READ[place].decoder.decode(text, context)
    except UpstreamError as error:
        assert error.reason in {"decode", "too_large"}
        return None


def expected(name: str, text: bytes) -> int | None:
    """Return the number of records in the reference, or None if it has no result. The
    exporter accepts more texts as Go's zero time than the calendar has.
    """
    if b'"000' in text:
        return None
    try:
        parsed = json.loads(text.decode("utf-8", "replace"), parse_constant=int)
        found = known({"users": USERS, name: parsed}).get(name)
    except (ValueError, RecursionError, OverflowError):
        return None
    return None if found is None else len(found)


def attempt(data: bytes) -> None:
    place, text = data[0] % 128 % len(READ), data[1:]
    whole = decoded(place, text)
    kind = type(READ[place].decoder)
    if kind in {ListDecoder, DocumentDecoder} and whole is not None:
        count = expected(READ[place].name, text)
        assert count in {None, len(whole.records) + whole.unread_count}, (whole, count)
        repeated = decoded(place, text, whole)
        assert repeated is not None
        assert repeated.records == whole.records, (repeated, whole)
        if kind is ListDecoder:
            pairs = zip(repeated.records, whole.records, strict=True)
            assert all(one is other for one, other in pairs), repeated
    if data[0] < 128:
        return
    default, elements.LIST_PIECE_BYTES = elements.LIST_PIECE_BYTES, PIECEWISE
    try:
        in_pieces = decoded(place, text)
    finally:
        elements.LIST_PIECE_BYTES = default
    if in_pieces is not None:
        assert whole is not None, in_pieces
        assert in_pieces.records == whole.records, (in_pieces, whole)

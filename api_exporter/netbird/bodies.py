"""From a body's bytes to records, with whatever cannot be read left out and named."""

import re
from collections.abc import Generator, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from api_exporter.netbird import records
from api_exporter.ports import UpstreamError

_SLICE = 200
"""Records decoded between two places to pause: about a millisecond's work."""

_INSTANTS = frozenset(
    field.encode_name
    for kind in vars(records).values()
    if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct
    for field in msgspec.structs.fields(kind)
    if field.type == records.Instant
)

_ZERO_TIME = re.compile(r"000[01]-\d\d-\d\d[Tt]\d\d:")
"""Go's zero time. In a zone west of Greenwich it falls into the year 0, which Python's
calendar does not have."""

_FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)
"""All that msgspec raises for hostile input: its errors, bad UTF-8, deep nesting."""

_NAMED = 20
"""Rejected records of one body that are named."""

_SHORTEST_VALUE = 5
"""Bytes for each comma of a long body, at least: records have more than twenty. Many
million tiny values would stop the event loop for seconds while they are split."""

_LONG = 1024 * 1024
"""Bytes of a body from which on that matters."""

_LONGEST_DOCUMENT = 1024 * 1024
"""Bytes: far more than any real one has."""


class Decoded(Struct, frozen=True):
    """What one body held.

    Attributes:
        records: those that could be read, one of each id.
        rejected: how many could not be.
        complaints: for the first ones of them, their place and what was wrong.
    """

    records: tuple[Struct, ...]
    rejected: int = 0
    complaints: tuple[str, ...] = ()


class Body(Protocol):
    """What a path answers with."""

    def decode(
        self, body: bytes, before: Sequence[Struct] = ()
    ) -> Generator[None, None, Decoded]:
        """Pauses now and then; raises UpstreamError where it is not what was promised.

        Records that are as they were `before` are those very objects: so two rounds of
        a large network hardly take more memory than one.
        """
        ...


class Listing:
    """A JSON array of records, or `null`, which is an empty one.

    Decoded in two steps: splitting the array is quick even for a hundred thousand
    records, then each record is decoded on its own, so that one bad record costs only
    itself and the caller may pause in between.
    """

    def __init__(self, record: type[Struct]) -> None:
        self._split = msgspec.json.Decoder(list[msgspec.Raw] | None)
        self._decoder = msgspec.json.Decoder(record)

    def decode(
        self, body: bytes, before: Sequence[Struct] = ()
    ) -> Generator[None, None, Decoded]:
        """Of two with one id the last counts; one with an empty id is left out."""
        if len(body) > _LONG and _SHORTEST_VALUE * body.count(b",") > len(body):
            raise UpstreamError("decode", "a list of something shorter than records")
        try:
            raws = self._split.decode(body) or []
        except _FAILURES as error:
            raise UpstreamError("decode", str(error)) from None
        old = {record.id: record for record in before}  # type: ignore[attr-defined]
        found: dict[str, Struct] = {}
        rejected = 0
        complaints: list[str] = []
        decode = self._decoder.decode
        for place, raw in enumerate(raws):
            if place % _SLICE == 0:
                yield
            try:
                record = decode(raw)
            except _FAILURES:
                try:
                    record = _leniently(self._decoder, raw)
                except _FAILURES as error:
                    rejected += 1
                    if rejected <= _NAMED:
                        complaints.append(f"[{place}]: {error}")
                    continue
            id_: str = record.id  # type: ignore[attr-defined]  # listed: all have one
            same = old.get(id_)
            found[id_] = record if same is None or same != record else same
        found.pop("", None)
        if rejected and rejected == len(raws):
            raise UpstreamError("decode", f"no record can be read: {complaints[0]}")
        return Decoded(tuple(found.values()), rejected, tuple(complaints))


class Document:
    """A single JSON object, small enough to be decoded at one go."""

    def __init__(self, record: type[Struct]) -> None:
        self._decoder = msgspec.json.Decoder(record)

    def decode(
        self,
        body: bytes,
        before: Sequence[Struct] = (),  # noqa: ARG002 - it is small
    ) -> Generator[None, None, Decoded]:
        """A list of one record."""
        yield
        if len(body) > _LONGEST_DOCUMENT:
            raise UpstreamError(
                "too_large",
                f"{len(body)} bytes, where {_LONGEST_DOCUMENT} are far too many",
            )
        try:
            return Decoded((_leniently(self._decoder, msgspec.Raw(body)),))
        except _FAILURES as error:
            raise UpstreamError("decode", str(error)) from None


def _leniently(decoder: msgspec.json.Decoder[Struct], raw: msgspec.Raw) -> Struct:
    """Decode with every `null` and zero time taken for an absent key."""
    return msgspec.convert(_present(msgspec.json.decode(raw)), decoder.type)


def _present(value: object) -> object:
    if isinstance(value, dict):
        return {k: _present(v) for k, v in value.items() if not _absent(k, v)}
    if isinstance(value, list):
        return [_present(v) for v in value if v is not None]
    return value


def _absent(key: str, value: object) -> bool:
    if key in _INSTANTS and isinstance(value, str):
        return _ZERO_TIME.match(value) is not None
    return value is None

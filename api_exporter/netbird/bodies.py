"""Decoders of bodies. Records that cannot be read are left out and named."""

import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from api_exporter.exposition.text import LONGEST_LABEL, SHORT, cut
from api_exporter.netbird import agent_records, records
from api_exporter.netbird.elements import (
    FAILURES,
    LONG,
    decoded,
    elements,
    mend,
)
from api_exporter.netbird.record_cache import NO_RECORDS, KnownRecords, RecordCache
from api_exporter.ports import UpstreamError

_INSTANTS = frozenset(
    field.encode_name
    for kind in (*vars(records).values(), *vars(agent_records).values())
    if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct
    for field in msgspec.structs.fields(kind)
    if field.type == records.Instant
)

_ZERO_TIME = re.compile(r"000[01]-\d\d-\d\d[Tt]\d\d:")
"""Go's zero time. In a zone west of Greenwich it falls into the year 0, which Python's
calendar does not have."""

_NAMED = 20
"""Rejected records of one body that are named."""

_HOPELESS = 1000
"""Records of a long body that cannot be read, and not one that can."""

_LONGEST_REREAD = 128 * 1024
"""Bytes of a record in which `null` and the like is looked for: that takes long."""

_LONGEST_MENDED = 512 * 1024
"""Bytes of a record in which bytes that are not UTF-8 are replaced: ten milliseconds'
work where there is nothing else. A group of five thousand peers has fewer."""

_LONGEST_DOCUMENT = 1024 * 1024
"""Bytes: far more than any real one has."""


class Decoded(Struct, frozen=True):
    """What one body held.

    Attributes:
        records: those that could be read, one of each id.
        rejected: how many could not be.
        complaints: for the first ones of them, their place and what was wrong.
        recognized: by which the next body is decoded sooner.
        unread: how many more there are, which nobody wants.
    """

    records: tuple[Struct, ...]
    rejected: int = 0
    complaints: tuple[str, ...] = ()
    recognized: KnownRecords = NO_RECORDS
    unread: int = 0


class DecodeContext(Struct, frozen=True):
    """What is known when a body is decoded.

    Attributes:
        before: the records of the body before it.
        recognized: of that body.
        now: when this one was asked for, seconds since the epoch.
    """

    before: Sequence[Struct] = ()
    recognized: KnownRecords = NO_RECORDS
    now: float = 0.0


FIRST = DecodeContext()


class Body(Protocol):
    """What a path answers with."""

    def decode(self, body: bytes, known: DecodeContext = FIRST, /) -> Decoded:
        """Raise UpstreamError where it is not what was promised.

        Records that are as they were `before` are those very objects, in that order,
        and new ones follow: so two rounds of a large network hardly take more memory
        than one, and what is made of them changes as little as they do.
        """
        ...


class Listing:
    """A JSON array of records.

    Decoded in two steps: splitting the array is quick even for a hundred thousand
    records, then each record is decoded on its own, so that one bad record costs only
    itself.

    Args:
        nullable: whether the upstream may write an empty one as `null`.
        key: the field that tells records apart, or a function that gives as much.
        ordered: whether the answer's order tells something: then it is kept, also where
            records are as they were before.
    """

    def __init__(
        self,
        record: type[Struct],
        *,
        nullable: bool = True,
        key: str | Callable[[Any], str] = "id",
        ordered: bool = False,
    ) -> None:
        self._decoder = msgspec.json.Decoder(record)
        self._nullable = nullable
        self._ordered = ordered
        self._id = attrgetter(key) if isinstance(key, str) else key

    def decode(self, body: bytes, known: DecodeContext = FIRST) -> Decoded:
        """Of two with one id the last counts; one with an empty id is left out."""
        old = {self._id(record): record for record in known.before}
        # Some lists of the upstream have another order at each reading.
        found: dict[str, Struct | None] = {} if self._ordered else dict.fromkeys(old)
        cache = RecordCache(known.recognized)
        count = rejected = 0
        complaints: list[str] = []
        for raws in elements(body):
            if raws is None and not self._nullable:
                raise UpstreamError("decode", "null instead of a list")
            for place, raw in enumerate(raws or (), count):
                try:
                    record = cache.find(raw) or self.read(raw)
                except FAILURES as error:
                    rejected += 1
                    if rejected <= _NAMED:
                        complaints.append(f"[{place}]: {error}")
                    if place + 1 == rejected == _HOPELESS and len(body) > LONG:
                        raise _unreadable(complaints) from None
                    continue
                id_: str = self._id(record)
                same = old.get(id_)
                record = record if same is None or same != record else same
                if self._ordered:
                    found.pop(id_, None)  # it stands where the last one stands
                found[id_] = record
                cache.learn(record, kept=id_ != "")
            count += len(raws or ())
        if rejected and rejected == count:
            raise _unreadable(complaints)
        found.pop("", None)
        there = tuple([record for record in found.values() if record is not None])
        recognized = MappingProxyType(cache.now)
        return Decoded(there, rejected, tuple(complaints), recognized)

    def read(self, raw: msgspec.Raw) -> Struct:
        """One record; raises one of FAILURES."""
        try:
            record = self._decoder.decode(raw)
        except FAILURES:
            record = _leniently(self._decoder, raw)
        id_: str = self._id(record)
        if len(id_) > SHORT and cut(id_) != id_:
            # Cut in labels, it would tell records apart no more.
            raise ValueError(f"the id has more than {LONGEST_LABEL} bytes")
        return record


def _unreadable(complaints: list[str]) -> UpstreamError:
    return UpstreamError("decode", f"no record can be read: {complaints[0]}")


class Unread:
    """A JSON array whose records nobody wants: they are counted and not decoded."""

    def decode(self, body: bytes, _: DecodeContext = FIRST) -> Decoded:
        count = 0
        for raws in elements(body):
            count += len(raws or ())
        return Decoded((), unread=count)


class _Page(Struct, frozen=True):
    data: list[msgspec.Raw] | None


class Page:
    """A page of a log: its records are counted and not decoded."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Page)

    def decode(self, body: bytes, _: DecodeContext = FIRST) -> Decoded:
        """No records; raises UpstreamError where it is no page."""
        try:
            page = decoded(self._decoder, body, 2)
        except FAILURES as error:
            raise UpstreamError(
                "decode", f"the response is not a page: {error}"
            ) from None
        return Decoded((), unread=len(page.data or ()))


class Document:
    """A single JSON object, small enough to be decoded at one go.

    Args:
        nullable: whether the upstream may write an empty one as `null`.
    """

    def __init__(self, record: type[Struct], *, nullable: bool = False) -> None:
        self._decoder = msgspec.json.Decoder(record)
        self._nullable = nullable

    def decode(self, body: bytes, _: DecodeContext = FIRST) -> Decoded:
        if self._nullable and body.strip() == b"null":
            body = b"{}"
        if len(body) > _LONGEST_DOCUMENT:
            raise UpstreamError(
                "too_large",
                f"{len(body)} bytes; the maximum is {_LONGEST_DOCUMENT} bytes",
            )
        try:
            return Decoded((_leniently(self._decoder, msgspec.Raw(mend(body))),))
        except FAILURES as error:
            raise UpstreamError("decode", str(error)) from None


def _leniently(decoder: msgspec.json.Decoder[Struct], raw: msgspec.Raw) -> Struct:
    """Decode with every `null` and zero time taken for an absent key.

    A byte that is not UTF-8 becomes the character that stands for such bytes.
    """
    if len(raw) > _LONGEST_MENDED:
        return decoder.decode(raw)
    text = bytes(raw).decode("utf-8", "replace")
    if len(raw) > _LONGEST_REREAD:
        return decoder.decode(text)
    return msgspec.convert(_present(msgspec.json.decode(text)), decoder.type)


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

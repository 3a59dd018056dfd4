"""What the upstream says, typed: narrow records and the decoders that fill them.

Only fields that are exported. Facts: the upstream's `openapi.yml`, and what its server
really sends, which is more tolerant: `null` where an array is promised, keys that older
servers leave out, zero times for "never", enum values that no specification knows.
"""

import re
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

Instant = Annotated[datetime, Meta(tz=True)] | None
"""An RFC 3339 time with any offset. Never is None, or any time before 1970."""

Count = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""A number that a sample's value, a double, holds exactly."""


class Peer(Struct, frozen=True, gc=False, kw_only=True):
    """A machine (`/api/peers`)."""

    id: str
    name: str = ""
    dns_label: str = ""
    hostname: str = ""
    ip: str = ""
    connection_ip: str = ""
    country_code: str = ""
    city_name: str = ""
    serial_number: str = ""
    os: str = ""
    version: str = ""
    ui_version: str = ""
    user_id: str = ""
    connected: bool = False
    ssh_enabled: bool = False
    ephemeral: bool = False
    login_expired: bool = False
    login_expiration_enabled: bool = False
    approval_required: bool = False
    created_at: Instant = None
    last_login: Instant = None
    last_seen: Instant = None


T = TypeVar("T", bound=Struct)

_SLICE = 200
"""Records decoded between two places to pause: about a millisecond's work."""

_ZERO_TIME = re.compile(r"000[01]-\d\d-\d\dT\d\d:")
"""Go's zero time. In a zone west of Greenwich it falls into the year 0, which Python's
calendar does not have."""

_FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)
"""All that msgspec raises for hostile input: its errors, bad UTF-8, deep nesting."""


class Undecodable(Exception):
    """A body that is not what was promised, or in which no record is; says where."""


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """What one body held.

    Attributes:
        records: those that could be read, one of each id.
        rejected: for each record that could not be, its place and what was wrong.
    """

    records: tuple[T, ...]
    rejected: tuple[str, ...] = ()


class Listing(Generic[T]):
    """Decodes a JSON array of records, or `null`, which is an empty one.

    In two steps: splitting the array is quick even for a hundred thousand records, then
    each record is decoded on its own, so that one bad record costs only itself and the
    caller may pause in between.
    """

    def __init__(self, record: type[T]) -> None:
        self._split = msgspec.json.Decoder(list[msgspec.Raw] | None)
        self._record = msgspec.json.Decoder(record)

    def decode(self, body: bytes) -> Generator[None, None, Decoded[T]]:
        """Pauses now and then; raises Undecodable."""
        try:
            raws = self._split.decode(body) or []
        except _FAILURES as error:
            raise Undecodable(str(error)) from None
        records: dict[str, T] = {}
        rejected = []
        decode = self._record.decode
        for place, raw in enumerate(raws):
            if place % _SLICE == 0:
                yield
            try:
                record = decode(raw)
            except _FAILURES:
                try:
                    record = _leniently(self._record, raw)
                except _FAILURES as error:
                    rejected.append(f"[{place}]: {error}")
                    continue
            # Every listed record has an id; a free proxy domain's is empty.
            records[record.id] = record  # type: ignore[attr-defined]
        records.pop("", None)
        if rejected and len(rejected) == len(raws):
            raise Undecodable(f"no record can be read: {rejected[0]}")
        return Decoded(tuple(records.values()), tuple(rejected))


def _leniently(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> T:
    """Decode once more with every `null` and zero time taken for an absent key."""
    return msgspec.convert(_present(msgspec.json.decode(raw)), decoder.type)


def _present(value: object) -> object:
    if isinstance(value, dict):
        return {k: _present(v) for k, v in value.items() if not _absent(v)}
    if isinstance(value, list):
        return [_present(v) for v in value]
    return value


def _absent(value: object) -> bool:
    return value is None or (
        isinstance(value, str) and _ZERO_TIME.match(value) is not None
    )

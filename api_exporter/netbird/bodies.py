"""Decoders of bodies. Records that cannot be read are left out and reported."""

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from math import inf
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from api_exporter.exposition.text import MAX_LABEL_BYTES, truncate
from api_exporter.netbird.elements import (
    DECODE_ERRORS,
    JSON_SPACE,
    LIST_PIECE_BYTES,
    decode_leniently,
    decode_problem,
    elements,
    replace_surrogates,
)
from api_exporter.netbird.record_cache import NO_RECORDS, KnownRecords, RecordCache
from api_exporter.netbird.records import instants, remove_wrong_types
from api_exporter.netbird.unknown import Inspector
from api_exporter.ports import Reason, ResponseBody, UpstreamError

_ZERO_TIME = re.compile(r"000[01]-\d\d-\d\d[Tt]\d\d:")
"""Go's zero time. West of Greenwich it falls into the year 0, which Python lacks."""

_MAX_ERRORS = 20
"""The maximum number of rejected records of one body that are reported."""

_MAX_UNREADABLE = 1000
"""Decoding of a long body ends if this many first records are all rejected."""

_MAX_CONVERTED_BYTES = 128 * 1024
"""The maximum bytes of a record in which `null` and the like is removed: it is slow."""

_MAX_MENDED_BYTES = 512 * 1024
"""The maximum bytes of a record in which invalid UTF-8 is replaced, which takes up to
ten milliseconds. A group of five thousand peers has fewer."""

_MAX_DOCUMENT_BYTES = 1024 * 1024


class Decoded(Struct, frozen=True):
    """The content of one body.

    Attributes:
        records: the readable records, one for each id.
        errors: the place and error of the first rejected records.
        recognized: records by fingerprint, which make decoding of the next body faster.
        unread_count: the number of records that are not decoded or not kept.
    """

    records: tuple[Struct, ...]
    rejected: int = 0
    errors: tuple[str, ...] = ()
    recognized: KnownRecords = NO_RECORDS
    unread_count: int = 0


class DecodeContext(Struct, frozen=True):
    """The knowledge with which a body is decoded.

    Attributes:
        recognized: `Decoded.recognized` of the previous body.
        now: the time of the request, in seconds since the epoch.
        inspector: looks for unknown fields and values; None to save the time.
    """

    before: Sequence[Struct] = ()
    recognized: KnownRecords = NO_RECORDS
    now: float = 0.0
    inspector: Inspector | None = None
    max_records: float = inf

    def check_length(self, count: int) -> None:
        if count > self.max_records:
            limit = f"LIST_MAX_RECORDS={self.max_records}"
            raise UpstreamError("too_large", f"the list has more than {limit} records")

    def inspect(self, records: Sequence[msgspec.Raw] | None) -> None:
        if self.inspector is not None and records:
            self.inspector.inspect(records)

    def add_wrong_types(self, names: Iterable[str]) -> None:
        if self.inspector is not None:
            self.inspector.add_wrong_types(names)


NO_CONTEXT = DecodeContext()


R_co = TypeVar("R_co", covariant=True)


class BodyDecoder(Protocol[R_co]):
    """A decoder of the responses to one path."""

    @property
    def record(self) -> type[R_co]: ...

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT, /) -> Decoded:
        """Decode a body. Raise UpstreamError if it has another form than promised.

        Unchanged records are the objects in `before`, in that order, and new records
        follow. So two refreshes of a large network take hardly more memory than one.
        Results change as little as the records.
        """


_MAX_ERROR_BYTES = 64 * 1024


class _ServerError(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of an error of the NetBird API. A proxy may give it the status 200."""

    message: str
    code: int


def check_for_error(body: bytes) -> None:
    """Raise UpstreamError for a body that is an error of the NetBird API.

    The error's own message may hold a hash of the token and is not repeated.
    """
    if len(body) > _MAX_ERROR_BYTES:
        return
    try:
        error = msgspec.json.decode(body, type=_ServerError)
    except DECODE_ERRORS:
        return
    code = error.code
    if code == 401 or (code == 404 and error.message.startswith("invalid token")):
        raise UpstreamError("auth", f"{code}: the NetBird API rejects the token")
    reason: Reason = _REASONS.get(code) or _REASONS.get(code // 100) or "decode"
    raise UpstreamError(reason, f"{code}: an error of the NetBird API with status 200")


_REASONS: Mapping[int, Reason] = {
    403: "forbidden",
    404: "not_found",
    429: "rate_limited",
    4: "http_4xx",
    5: "http_5xx",
}
"""The reasons of an error's code, and of the first digit of other codes."""


S = TypeVar("S", bound=Struct)


class ListDecoder(Generic[S]):
    """A decoder of a JSON array of records.

    Splitting the array is quick even for a hundred thousand records. Each record is
    then decoded on its own, so a bad record costs only itself.

    Args:
        nullable: true if NetBird may write an empty array as `null`.
        key: the field that identifies a record, or a function that returns its key.
        ordered: true if the order of the response has a meaning. It is kept then, even
            for unchanged records.
    """

    def __init__(
        self,
        record: type[S],
        *,
        nullable: bool = True,
        key: str | Callable[[Any], str] = "id",
        ordered: bool = False,
    ) -> None:
        self.record = record
        self._decoder = msgspec.json.Decoder[Struct](record)
        self._nullable = nullable
        self._ordered = ordered
        self._id = attrgetter(key) if isinstance(key, str) else key

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        """Keep the last of two records with one id; leave out records without one."""
        old = {self._id(record): record for record in known.before}
        # NetBird sends some lists in another order each time.
        found: dict[str, Struct | None] = {} if self._ordered else dict.fromkeys(old)
        cache = RecordCache(known.recognized)
        count = rejected = 0
        errors: list[str] = []
        for raws in elements(body):
            if raws is None and not self._nullable:
                raise UpstreamError("decode", "the response is null instead of a list")
            known.check_length(count + len(raws or ()))
            known.inspect(raws)
            for place, raw in enumerate(raws or (), count):
                wrong: set[str] = set()
                try:
                    record = cache.find(raw) or self.read(raw, wrong)
                except DECODE_ERRORS as error:
                    rejected += 1
                    if rejected <= _MAX_ERRORS:
                        errors.append(f"[{place}]: {decode_problem(error)}")
                    if (
                        place + 1 == rejected == _MAX_UNREADABLE
                        and len(body) > LIST_PIECE_BYTES
                    ):
                        raise _unreadable_error(errors) from None
                    continue
                id_: str = self._id(record)
                previous = old.get(id_)
                record = record if previous is None or previous != record else previous
                if self._ordered:
                    found.pop(id_, None)  # the last of two records gives the place
                found[id_] = record
                if wrong:  # not learned, so that the next body shows it again
                    known.add_wrong_types(wrong)
                else:
                    cache.learn(record, kept=id_ != "")
            count += len(raws or ())
        if rejected and rejected == count:
            raise _unreadable_error(errors)
        found.pop("", None)
        readable = tuple([record for record in found.values() if record is not None])
        recognized = MappingProxyType(cache.learned)
        return Decoded(readable, rejected, tuple(errors), recognized)

    def read(self, raw: msgspec.Raw, wrong: set[str]) -> Struct:
        """Return one record; raise one of DECODE_ERRORS.

        Args:
            wrong: gets the names of fields that are unknown because of their type.
        """
        record = decode_record(self._decoder, raw, wrong)
        id_: str = self._id(record)
        if truncate(id_) != id_:
            # Labels would cut it, and would no longer identify the record.
            raise ValueError(f"the id has more than {MAX_LABEL_BYTES} bytes")
        return record


def decode_record(
    decoder: msgspec.json.Decoder[Struct], raw: msgspec.Raw, wrong: set[str]
) -> Struct:
    try:
        return decoder.decode(raw)
    except DECODE_ERRORS:
        return _decode_loosely(decoder, raw, wrong)


def _unreadable_error(errors: list[str]) -> UpstreamError:
    return UpstreamError("decode", f"no record can be read: {errors[0]}")


class CountingDecoder:
    """A decoder of a JSON array that no collector reads. It only counts the records."""

    record = type(None)

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        count = 0
        for raws in elements(body):
            known.inspect(raws)
            count += len(raws or ())
        return Decoded((), unread_count=count)


class LogPage(Struct, frozen=True):
    """A page of a log, with the fields that NetBird sends."""

    data: list[msgspec.Raw] | None
    page: int = 1
    page_size: int = 0
    total_pages: int = 0
    total_records: int | None = None


_LOG_PAGE = msgspec.json.Decoder(LogPage)


def decode_log_page(body: bytes) -> LogPage:
    try:
        return decode_leniently(_LOG_PAGE, body, 2)
    except DECODE_ERRORS as error:
        raise UpstreamError(
            "decode", f"the response is not a page: {decode_problem(error)}"
        ) from None


class PageDecoder:
    """A decoder of one page of a log: it only counts the records."""

    record = type(None)

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        page = decode_log_page(body)
        known.inspect(page.data)
        return Decoded((), unread_count=len(page.data or ()))


class DocumentDecoder(Generic[S]):
    """A decoder of a single JSON object, small enough to be decoded in one step.

    Args:
        nullable: true if NetBird may write an empty object as `null`.
    """

    def __init__(self, record: type[S], *, nullable: bool = False) -> None:
        self.record = record
        self._decoder = msgspec.json.Decoder[Struct](record)
        self._fields = frozenset(record.__struct_encode_fields__)
        self._nullable = nullable

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        """Decode a body. Raise UpstreamError for an object without a known field."""
        if self._nullable and body.strip(JSON_SPACE) == b"null":
            return Decoded((self._decoder.type(),))
        if len(body) > _MAX_DOCUMENT_BYTES:
            raise UpstreamError(
                "too_large",
                f"{len(body)} bytes; the maximum is {_MAX_DOCUMENT_BYTES} bytes",
            )
        raw = msgspec.Raw(replace_surrogates(body))
        wrong: set[str] = set()
        try:
            record = _decode_loosely(self._decoder, raw, wrong)
            fields = msgspec.json.decode(bytes(raw).decode("utf-8", "replace"))
        except DECODE_ERRORS as error:
            raise UpstreamError("decode", decode_problem(error)) from None
        if self._fields.isdisjoint(fields):
            names = ", ".join(sorted(self._fields))
            raise UpstreamError("decode", f"the response has no field of {names}")
        known.inspect([raw])
        known.add_wrong_types(wrong)
        return Decoded((record,))


def _decode_loosely(
    decoder: msgspec.json.Decoder[Struct], raw: msgspec.Raw, wrong: set[str]
) -> Struct:
    """Decode a record, with every `null` and zero time treated as an absent key.

    A byte that is not UTF-8 becomes U+FFFD. A shown field of another type is absent,
    and its name is added to `wrong`.
    """
    if len(raw) > _MAX_MENDED_BYTES:
        return decoder.decode(raw)
    text = bytes(raw).decode("utf-8", "replace")
    if len(raw) > _MAX_CONVERTED_BYTES:
        return decoder.decode(text)
    record: Any = decoder.type  # msgspec 0.23 declares another type of it
    value = _without_absent(msgspec.json.decode(text), instants(record))
    try:
        decoded: Struct = msgspec.convert(value, record)
    except msgspec.ValidationError:
        wrong |= remove_wrong_types(value, record)
        decoded = msgspec.convert(value, record)
    return decoded


def _without_absent(value: object, times: frozenset[str]) -> object:
    if isinstance(value, dict):
        return {
            key: _without_absent(part, times)
            for key, part in value.items()
            if not (_is_zero(part) if key in times else part is None)
        }
    if isinstance(value, list):
        return [_without_absent(part, times) for part in value if part is not None]
    return value


def _is_zero(value: object) -> bool:
    return value is None or (
        isinstance(value, str) and _ZERO_TIME.match(value) is not None
    )


_STEP_BYTES = 1024 * 1024
"""The maximum number of bytes that one call decompresses to."""

_CHUNK = 64 * 1024
"""Compressed bytes for one call, which copies those that it does not consume."""

_MAX_OVERHEAD = 1024 * 1024
"""Bytes by which compressed data may be longer than its content."""

_GZIP = 16 + zlib.MAX_WBITS


def unpack(body: ResponseBody) -> bytes:
    """Return the data of a body, decompressed if it is gzip.

    The result takes at most nine eighths of the limit in memory. Several gzip members
    are one body, as for Go and curl. A body without any byte is empty, even if its
    header says gzip. Raises UpstreamError.
    """
    return body.mask(_unpack(body) if body.packed and body.data else body.data)


def _unpack(body: ResponseBody) -> bytes:
    packed, plain = BytesIO(body.data), BytesIO()  # getvalue() does not copy
    member = zlib.decompressobj(_GZIP)
    try:
        while (
            data := member.unconsumed_tail or member.unused_data or packed.read(_CHUNK)
        ):
            if packed.tell() - len(data) - plain.tell() > _MAX_OVERHEAD:
                message = "the gzip body has extra data at its end"
                raise UpstreamError("too_large", message)
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            plain.write(member.decompress(data, _STEP_BYTES))
            if plain.tell() > body.limit:
                message = f"the body is longer than {body.limit} bytes"
                raise UpstreamError("too_large", message)
        plain.write(member.flush())
    except zlib.error:
        raise UpstreamError("decode", "the gzip body is damaged") from None
    if not member.eof:
        raise UpstreamError("decode", "the gzip body is incomplete")
    return plain.getvalue()

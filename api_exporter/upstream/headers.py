"""Values of response headers. Invalid bytes raise no error."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from twisted.web.http_headers import Headers

GZIP = "gzip"
"""The only content coding that is requested."""

RECEIVED_ENCODING = b"X-Received-Content-Encoding"
"""The header to which `GzipAgent` moves Content-Encoding; treq ignores it."""


def codings(headers: Headers) -> list[str]:
    """Return the content codings, the outermost layer last (RFC 9110, 8.4)."""
    listed = ",".join(_values(headers, RECEIVED_ENCODING)).lower().split(",")
    named = [coding.strip() for coding in listed]
    return [coding for coding in named if coding not in {"", "identity"}]


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for value in headers.getRawHeaders(name, [])]


def media_type(headers: Headers) -> str:
    """Return the media type, such as `application/json`; "" if it is missing."""
    (value, *_) = _values(headers, b"content-type") or [""]
    return value.partition(";")[0].strip().lower()


def challenges(headers: Headers) -> list[str]:
    """Return the proxy's authentication challenges, such as `Basic realm="x"`."""
    return _values(headers, b"proxy-authenticate")


def request_id(headers: Headers) -> str:
    """Return the request's id in the NetBird API's log; "" if missing or invalid."""
    (value, *_) = _values(headers, b"x-request-id") or [""]
    return value if re.fullmatch(r"[\w.:-]{1,64}", value, re.ASCII) else ""


def date(headers: Headers) -> float | None:
    """Return the Date, in whole seconds since the epoch; None if unknown."""
    (value, *_) = _values(headers, b"date") or [""]
    sent = _parse_date(value)
    return None if sent is None else sent.timestamp()


def retry_after(headers: Headers, *, now: float) -> float | None:
    """Return Retry-After (RFC 9110, 10.2.3: seconds or a date) in seconds, or None."""
    (value, *_) = _values(headers, b"retry-after") or [""]
    if value.isascii() and value.isdigit() and len(value) <= 9:
        return float(value)
    date = _parse_date(value)
    return None if date is None else max(0.0, date.timestamp() - now)


def _parse_date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    # Without a zone, or with "-0000", the result has none: HTTP dates are in UTC.
    return found if found.tzinfo else found.replace(tzinfo=UTC)

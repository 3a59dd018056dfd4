"""Values of response headers. Invalid bytes raise no error."""

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

from twisted.web.http_headers import Headers

from api_exporter.upstream.masking import mask_secrets

GZIP = "gzip"
"""The only content coding that is requested."""

RECEIVED_ENCODING = b"X-Received-Content-Encoding"
"""The header to which `GzipAgent` moves Content-Encoding; treq ignores it."""

BASIC = "Basic"

_SCHEMES = (BASIC, "Digest", "NTLM", "Negotiate", "Kerberos", "Bearer")
"""Authentication schemes that messages may name; a proxy may send anything."""


def mask_headers(headers: Headers, *secrets: str) -> Headers:
    """Return the headers of a response with the beginning of each value, masked."""
    masked = Headers()
    for name, values in headers.getAllRawHeaders():
        for value in values:
            text = mask_secrets(value.decode("latin-1"), *secrets)
            masked.addRawHeader(name, text.encode("latin-1"))
    return masked


def codings(headers: Headers) -> list[str]:
    """Return the content codings, the outermost layer last (RFC 9110, 8.4)."""
    listed = ",".join(values(headers, RECEIVED_ENCODING)).lower().split(",")
    named = [coding.strip() for coding in listed]
    return [coding for coding in named if coding not in {"", "identity"}]


def values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for value in headers.getRawHeaders(name, [])]


def _first(headers: Headers, name: bytes) -> str:
    return next(iter(values(headers, name)), "")


def media_type(headers: Headers) -> str:
    """Return the media type, such as `application/json`; "" if it is missing."""
    return _first(headers, b"content-type").partition(";")[0].strip().lower()


def known_schemes(challenges: Iterable[str]) -> list[str]:
    schemes = {challenge.partition(" ")[0].lower() for challenge in challenges}
    return [name for name in _SCHEMES if name.lower() in schemes]


def printable(headers: Headers, name: bytes) -> str:
    """Return the first value of a header in ASCII; "" if missing."""
    return re.sub("[^ -~]", "?", _first(headers, name)).strip()


def request_id(headers: Headers) -> str:
    """Return the request's id in the NetBird API's log; "" if missing or invalid."""
    value = _first(headers, b"x-request-id")
    return value if re.fullmatch(r"[\w.:-]{1,64}", value, re.ASCII) else ""


def date(headers: Headers) -> float | None:
    """Return the Date, in whole seconds since the epoch; None if unknown."""
    return _parse_date(_first(headers, b"date"))


def retry_after(headers: Headers, *, now: float) -> float | None:
    """Return Retry-After (RFC 9110, 10.2.3: seconds or a date) in seconds, or None."""
    value = _first(headers, b"retry-after")
    if value.isascii() and value.isdigit() and len(value) <= 9:
        return float(value)
    date = _parse_date(value)
    return None if date is None else max(0.0, date - now)


def _parse_date(value: str) -> float | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    # Without a zone, or with "-0000", the result has none: HTTP dates are in UTC.
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()

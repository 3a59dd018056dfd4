"""Failed responses and exceptions, translated into UpstreamError in one place."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

import msgspec
from OpenSSL import SSL
from service_identity import CertificateError, VerificationError
from twisted.internet import error
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.web.client import PartialDownloadError, ResponseFailed
from twisted.web.http_headers import Headers

from api_exporter.ports import Reason, UpstreamError
from api_exporter.upstream.headers import (
    challenges,
    media_type,
    request_id,
    retry_after,
)
from api_exporter.upstream.masking import mask_secrets

_CANCELLED = (CancelledError, error.ConnectingCancelledError)
TLS_ERRORS = (SSL.Error, VerificationError, CertificateError)
"""Exceptions of a TLS layer that does not trust or understand the peer."""


class ProxyTimeout(CancelledError):
    """The proxy had not connected before the deadline, or before the caller cancelled.

    The message is a sentence about the proxy; a time may be appended.
    """


_REDIRECTED = (
    "the NetBird API redirects to another address, and the exporter does not send the"
    " token there; set UPSTREAM_API_URL to the final address"
)
_BASIC = "Basic"
_SCHEMES = (_BASIC, "Digest", "NTLM", "Negotiate", "Kerberos", "Bearer")
"""Authentication schemes that messages may name; a proxy may send anything."""

_PLAIN_HTTP_REFUSED = re.compile(
    rb"HTTP request to an HTTPS server|HTTP request was sent to HTTPS port"
    rb"|speaking plain HTTP to an SSL-enabled server port"
)
"""How Go (NetBird, Traefik, Caddy), nginx and Apache answer a request without TLS."""

_WRONG_VERSION = "wrong version number"
"""OpenSSL's message about data without TLS, mostly plain HTTP."""

_NOT_MODIFIED = (
    "a cache in front of the NetBird API answers without a body; exclude /api/ from"
    " the cache"
)


class _Message(msgspec.Struct):
    """The body of an error that the NetBird API itself sends."""

    message: str = ""


def response_error(
    status: int, headers: Headers, body: bytes, *, now: float, secrets: Sequence[str]
) -> UpstreamError:
    """Return the failure behind a status other than 200."""
    if status == 426 or (status == 400 and _PLAIN_HTTP_REFUSED.search(body)):
        return UpstreamError(
            "tls",
            f"{status}: the server speaks TLS on this port, not plain HTTP; write"
            " https:// in UPSTREAM_API_URL",
        )
    error = _response_error(status, headers, body, now=now, secrets=secrets)
    error.request_id = request_id(headers)
    return error


def _response_error(
    status: int, headers: Headers, body: bytes, *, now: float, secrets: Sequence[str]
) -> UpstreamError:
    """Return the failure without its request id. Repeated secrets are masked.

    Facts: the NetBird API's 404 has three meanings. An unknown token: JSON, the message
    starts with "invalid token". An unknown path: plain text. An unknown object: other
    JSON. The body of the first one holds a hash of the token and is never repeated.
    """
    said = mask_secrets(_server_message(body), *secrets)
    detail = f"{status}: {said}" if said else str(status)
    if status == 401 or (status == 404 and said.startswith("invalid token")):
        return UpstreamError("auth", f"{status}: the NetBird API rejects the token")
    if status == 404:
        is_unknown_path = media_type(headers) == "text/plain"
        return UpstreamError(
            "not_found",
            "404: the NetBird API does not have this path"
            if is_unknown_path
            else detail,
            unsupported=is_unknown_path,
            server_message=said,
        )
    wait = retry_after(headers, now=now)
    if status == 429:
        return UpstreamError("rate_limited", detail, retry_after=wait)
    if 300 <= status < 400:
        message = _NOT_MODIFIED if status == 304 else _REDIRECTED
        return UpstreamError("redirect", f"{status}: {message}")
    if 500 <= status < 600:
        return UpstreamError("http_5xx", detail, retryable=True, retry_after=wait)
    if status == 407:
        return login_error(status, "a proxy", challenges(headers))
    if 400 <= status < 500:
        reason: Reason = "forbidden" if status == 403 else "http_4xx"
        return UpstreamError(reason, detail, server_message=said)
    return UpstreamError("decode", f"the status is {status}, not 200")


def login_error(status: int, proxy: str, challenges: Iterable[str]) -> UpstreamError:
    """Return a proxy's failure, given the values of Proxy-Authenticate."""
    schemes = {challenge.partition(" ")[0].lower() for challenge in challenges}
    known = [name for name in _SCHEMES if name.lower() in schemes]
    requirement = "a valid user and password"
    if known and _BASIC not in known:
        offered = " or ".join(known)
        requirement = f"authentication by {offered}; only {_BASIC} is supported"
    return UpstreamError("proxy_auth", f"{status}: {proxy} requires {requirement}")


def headers_error(headers: Headers) -> UpstreamError | None:
    """Return the failure that the headers of a 200 show; None if they show none."""
    if media_type(headers) == "text/html":
        return UpstreamError(
            "decode",
            "a web page instead of JSON: check that UPSTREAM_API_URL is the address"
            " of the API",
        )
    return None


def raise_timeout(result: object, timeout: float) -> NoReturn:
    """Raise the failure of a request that took longer than the timeout in seconds."""
    if isinstance(result, Failure):
        for cause in _causes(result):
            if isinstance(cause, ProxyTimeout):
                message = f"{cause} within {timeout:.3g} s"
                raise UpstreamError("proxy", message) from None
    raise UpstreamError("timeout", f"no response within {timeout:.3g} s")


def translate(failure: Failure) -> NoReturn:
    """Raise UpstreamError for a network failure, and any other exception unchanged."""
    causes = list(_causes(failure))
    for cause in causes:
        if isinstance(cause, UpstreamError):
            raise cause from None
    if any(isinstance(cause, _CANCELLED) for cause in causes):
        raise CancelledError from None
    for kinds, reason, message in _REASONS:
        for cause in causes:
            if isinstance(cause, kinds):
                raise UpstreamError(
                    reason,
                    f"{message}{explanation(cause)}",
                    retryable=reason in _RETRYABLE,
                    unsent=isinstance(cause, _UNSENT),
                ) from None
    failure.raiseException()


_RETRYABLE: frozenset[Reason] = frozenset({"dns", "connect", "tls"})
"""Failures of the connection. `timeout` is missing: a retry would take as long."""

_UNSENT = (error.DNSLookupError, error.ConnectError)

_REASONS: tuple[tuple[tuple[type[Exception], ...], Reason, str], ...] = (
    ((MemoryError,), "internal", "not enough memory"),
    (TLS_ERRORS, "tls", "no trusted TLS connection"),
    ((error.DNSLookupError,), "dns", "the host name cannot be resolved"),
    ((error.TimeoutError, error.TCPTimedOutError), "timeout", "no connection in time"),
    ((error.ConnectError,), "connect", "no connection"),
    (
        (error.ConnectionClosed, PartialDownloadError),
        "connect",
        "the connection was lost before the end of the response",
    ),
    ((ResponseFailed,), "decode", "the response does not match its headers"),
)
"""The reasons of exceptions; the first match counts, so a wrapper comes last."""


def _causes(failure: Failure) -> Iterator[BaseException]:
    for inner in getattr(failure.value, "reasons", ()):
        yield from _causes(inner)
    if failure.value is not None:
        yield failure.value


def explanation(cause: BaseException | None) -> str:
    """Return a cause's own message in one line, or its type if it has none."""
    if isinstance(cause, SSL.Error) and not isinstance(cause, SSL.SysCallError):
        message = (
            ", ".join(text for *_, text in cause.args[0] if text) if cause.args else ""
        )
        if _WRONG_VERSION in message:
            message = (
                "the server does not speak TLS on this port; write http:// in"
                f" UPSTREAM_API_URL if that is right ({message})"
            )
    elif isinstance(cause, (VerificationError, ResponseFailed, error.ConnectionClosed)):
        message = ""
    else:
        message = str(cause).rstrip(".")
    return f": {_one_line(message)}" if message else f" ({type(cause).__name__})"


def _server_message(body: bytes) -> str:
    try:
        return _one_line(msgspec.json.decode(body, type=_Message).message)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text)

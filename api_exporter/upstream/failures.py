"""Exceptions, translated into UpstreamError in one place; see also `refusal`."""

import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

from OpenSSL import SSL
from twisted.internet import error
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.web.client import PartialDownloadError, ResponseFailed
from twisted.web.http_headers import Headers

from api_exporter.ports import Reason, UpstreamError
from api_exporter.upstream.headers import BASIC, known_schemes, media_type
from api_exporter.upstream.masking import one_line

CANCELLED = (CancelledError, error.ConnectingCancelledError)


class CertificateProblem(Exception):
    """A certificate that cannot be trusted; the text says why."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message)
        self.cure = cure


TLS_ERRORS = (SSL.Error, CertificateProblem)
"""Exceptions of a TLS layer that does not trust or understand the peer."""


class ConnectTimeout(CancelledError):
    """No connection before the deadline, or before the caller cancelled."""


class ProxyTimeout(ConnectTimeout):
    """The proxy had not connected before the deadline, or before the caller cancelled.

    The message is a sentence about the proxy; a time may be appended.
    """


_PLAIN_HTTP_REFUSED = re.compile(
    rb"HTTP request to an HTTPS server|HTTP request was sent to HTTPS port"
    rb"|speaking plain HTTP to an SSL-enabled server port"
)
"""How Go (NetBird, Traefik, Caddy), nginx and Apache answer a request without TLS."""

_WRONG_VERSION = "wrong version number"
"""OpenSSL's message about data without TLS, mostly plain HTTP."""

_NO_CONNECTION = "no connection in time"
_HTTP_2_ONLY = "the server speaks HTTP/2 only on this port; the exporter needs HTTP/1.1"
_OTHER_PROTOCOL = (
    "426: the server expects another protocol on this port, such as HTTP/2 or WebSocket"
)
_CURE_HTTP_2 = (
    "Enable HTTP/1.1 there, or write the port of the REST API in UPSTREAM_API_URL: it"
    " may be the port of gRPC."
)
_CURE_HTTP = (
    "Check that UPSTREAM_API_URL has the port of the NetBird API: another service may"
    " answer there."
)
_CURE_SCHEME = "UPSTREAM_API_URL has the wrong scheme or port."


def http_2_error() -> UpstreamError:
    return UpstreamError("decode", _HTTP_2_ONLY, cure=_CURE_HTTP_2)


def protocol_error(status: int, body: bytes, url: str) -> UpstreamError | None:
    """Return the failure of a request in the wrong protocol; None for others."""
    if not url.startswith("http:"):
        if status == 426:
            return UpstreamError("decode", _OTHER_PROTOCOL, cure=_CURE_HTTP_2)
        return None
    if status != 426 and not (status == 400 and _PLAIN_HTTP_REFUSED.search(body)):
        return None
    message = (
        f"{status}: the server speaks TLS on this port, not plain HTTP; write https://"
        " in UPSTREAM_API_URL"
    )
    return UpstreamError("tls", message, cure=_CURE_SCHEME)


def login_error(status: int, proxy: str, challenges: Iterable[str]) -> UpstreamError:
    """Return a proxy's failure, given the values of Proxy-Authenticate."""
    schemes = known_schemes(challenges)
    requirement = "a valid user and password"
    if schemes and BASIC not in schemes:
        offered = " or ".join(schemes)
        requirement = f"authentication by {offered}; only {BASIC} is supported"
    return UpstreamError("proxy_auth", f"{status}: {proxy} requires {requirement}")


def headers_error(headers: Headers) -> UpstreamError | None:
    """Return the failure that the headers of a 200 show; None if they show none."""
    if media_type(headers) == "text/html":
        return UpstreamError(
            "decode",
            "a web page instead of JSON",
            cure="Check that UPSTREAM_API_URL is the address of the API, and that no"
            " login page answers for /api/.",
        )
    return None


def raise_timeout(result: object, timeout: float) -> NoReturn:
    """Raise the failure of a request that took longer than the timeout in seconds."""
    if isinstance(result, Failure):
        for cause in _causes(result):
            if isinstance(cause, ProxyTimeout):
                message = f"{cause} within {timeout:.3g} s"
                raise UpstreamError("proxy", message, unsent=True) from None
            if isinstance(cause, ConnectTimeout):
                raise UpstreamError("timeout", _NO_CONNECTION, unsent=True) from None
    raise UpstreamError("timeout", f"no complete response within {timeout:.3g} s")


def raise_upstream_error(failure: Failure) -> NoReturn:
    """Raise UpstreamError for a network failure, and any other exception unchanged."""
    causes = list(_causes(failure))
    for cause in causes:
        if isinstance(cause, UpstreamError):
            raise cause from None
    if any(isinstance(cause, CANCELLED) for cause in causes):
        raise CancelledError from None
    for kinds, reason, message in _REASONS:
        for cause in causes:
            if isinstance(cause, kinds):
                raise UpstreamError(
                    reason,
                    f"{message}{explanation(cause)}",
                    retryable=reason in _RETRYABLE,
                    unsent=isinstance(cause, _UNSENT),
                    cure=cure_of(cause),
                ) from None
    failure.raiseException()


_RETRYABLE: frozenset[Reason] = frozenset({"dns", "connect", "tls"})
"""Failures of the connection. `timeout` is missing: a retry would take as long."""

_UNSENT = (error.DNSLookupError, error.ConnectError)

_REASONS: tuple[tuple[tuple[type[Exception], ...], Reason, str], ...] = (
    ((MemoryError,), "internal", "not enough memory"),
    (TLS_ERRORS, "tls", "no trusted TLS connection"),
    ((error.DNSLookupError,), "dns", "the host name cannot be resolved"),
    ((error.TimeoutError, error.TCPTimedOutError), "timeout", _NO_CONNECTION),
    ((error.ConnectError,), "connect", "no connection"),
    (
        (error.ConnectionClosed, PartialDownloadError),
        "connect",
        "the connection was lost before the end of the response",
    ),
    ((ResponseFailed,), "decode", "the response is not valid HTTP"),
)
"""The reasons of exceptions; the first match counts, so a wrapper comes last."""


def _causes(failure: Failure) -> Iterator[BaseException]:
    for inner in getattr(failure.value, "reasons", ()):
        yield from _causes(inner)
    if failure.value is not None:
        yield failure.value


def explanation(cause: BaseException | None) -> str:
    """Return a cause's own message in one line, after a colon; "" if it has none."""
    if isinstance(cause, SSL.SysCallError):
        message = str(cause.args[-1])
    elif isinstance(cause, SSL.Error):
        message = _openssl_message(cause)
        if _WRONG_VERSION in message:
            message = (
                "the server does not speak TLS on this port; write http:// in"
                f" UPSTREAM_API_URL if that is right ({message})"
            )
    elif isinstance(cause, (MemoryError, ResponseFailed, error.ConnectionClosed)):
        message = ""
    else:
        message = str(cause).rstrip(".")
    return f": {one_line(message)}" if message else ""


def cure_of(cause: BaseException | None) -> str:
    """Return what to do about a failed connection; "" if the advice fits."""
    if isinstance(cause, ResponseFailed):
        return _CURE_HTTP
    if isinstance(cause, CertificateProblem):
        return cause.cure
    is_tls = isinstance(cause, SSL.Error)
    return _CURE_SCHEME if is_tls and _WRONG_VERSION in str(cause) else ""


def _openssl_message(cause: SSL.Error) -> str:
    return ", ".join(text for *_, text in cause.args[0] if text) if cause.args else ""

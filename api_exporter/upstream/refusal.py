"""Responses with a status other than 200: which program answers, and why.

NetBird's own errors are JSON with `message` and `code`. All others come from something
in front of NetBird, such as a proxy, a firewall or a login page.
"""

from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec
from twisted.web.http_headers import Headers

from api_exporter.ports import Reason, UpstreamError
from api_exporter.settings.proxy import DEFAULT_PORTS
from api_exporter.upstream.failures import http_2_error, login_error, protocol_error
from api_exporter.upstream.headers import (
    date,
    known_schemes,
    mask_headers,
    media_type,
    printable,
    request_id,
    retry_after,
    values,
)
from api_exporter.upstream.masking import mask_secrets, one_line

_UNKNOWN_PATH = b"404 page not found"
"""The body of Go's response for an unknown path."""

_MAX_SERVER_NAME = 60

_ROLE_UNKNOWN = "user role: "
"""The beginning of a 404 message that is a refusal: some paths know only some roles."""

_CURES: dict[int, str] = {
    404: "Check that UPSTREAM_API_URL names the management API. Let /api/ through to"
    " it.",
    429: "Exempt /api/ from the request limit there. The exporter retries this path"
    " after Retry-After or 30 s, at most its interval, and goes on with the others: the"
    " limit is not NetBird's.",
}

_CURE_4XX = (
    "Let /api/ through to the management API: exempt it there from logins, challenge"
    " pages and blocking. The answer says nothing about the token."
)
_CURE_5XX = (
    "Check that the management server runs, and that the proxy in front of it forwards"
    " /api/ to its port. The log of the proxy says more. The exporter retries."
)
_CURE_OBJECT = (
    "NetBird knows the path, but not the object that the message names. Look at this"
    " time in the log of the management server."
)
_CURE_HTTPS = "Write https:// before the host."
_CURE_REDIRECT = (
    "If this is a login page, let /api/ through without a login. If NetBird has moved,"
    " set UPSTREAM_API_URL to its new address."
)


class _NetBirdError(msgspec.Struct):
    """The body of an error that the NetBird API itself sends."""

    message: str
    code: int


def response_error(
    status: int,
    headers: Headers,
    body: bytes | None,
    *,
    url: str,
    now: float,
    secrets: tuple[str, ...],
) -> UpstreamError:
    """Return the failure behind a status other than 200. Repeated secrets are masked.

    Args:
        body: None if it could not be read; then the media type shows whose it is.
        now: used if the response has no Date.
    """
    headers = mask_headers(headers, *secrets)
    said = None if body is None else _netbird_message(body, secrets)
    if said is None and body is None and media_type(headers) == "application/json":
        said = ""
    if said is None and status == 405 and body == b"":
        said = ""  # Go's response to a method that an old server does not have
    wait = retry_after(headers, now=date(headers) or now)
    if said is not None and status >= 400:
        error = _netbird_error(status, said, wait)
    else:
        error = _foreign_error(status, headers, body, url, wait)
    error.request_id = request_id(headers)
    return error


def _netbird_message(body: bytes, secrets: tuple[str, ...]) -> str | None:
    """Return the message of NetBird's own error; None for any other body."""
    try:
        message = msgspec.json.decode(body, type=_NetBirdError).message
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return mask_secrets(one_line(message), *secrets)


def _netbird_error(status: int, said: str, wait: float | None) -> UpstreamError:
    """Return the failure that NetBird itself reports.

    Facts: NetBird's 404 has several meanings. An unknown token: the message starts
    with "invalid token"; it holds a hash of the token and is never repeated. An unknown
    role: a refusal. Else an unknown object.
    """
    detail = f"{status}: {said}" if said else str(status)
    if status == 401 or (status == 404 and said.startswith("invalid token")):
        return UpstreamError("auth", f"{status}: the NetBird API rejects the token")
    if status == 429:
        return UpstreamError("rate_limited", detail, retry_after=wait)
    if status >= 500:
        return UpstreamError("http_5xx", detail, retryable=True, retry_after=wait)
    if status == 403 or (status == 404 and said.startswith(_ROLE_UNKNOWN)):
        return UpstreamError("forbidden", detail, server_message=said)
    if status == 404:
        return UpstreamError(
            "not_found", detail, server_message=said, cure=_CURE_OBJECT
        )
    return UpstreamError(
        "http_4xx", detail, server_message=said, unsupported=status == 405
    )


def _foreign_error(
    status: int, headers: Headers, body: bytes | None, url: str, wait: float | None
) -> UpstreamError:
    """Return the failure that a response shows if NetBird itself did not send it."""
    if (error := _known_error(status, headers, body or b"", url)) is not None:
        return error
    answers = f"something in front of NetBird answers {status}"
    if 300 <= status < 400:
        return _redirect(answers, printable(headers, b"location"), url)
    if not 400 <= status < 600:
        return UpstreamError("decode", f"the status is {status}, not 200")
    message = f"{answers} ({', '.join(_facts(headers, body))})"
    if status >= 500:
        return UpstreamError(
            "http_5xx", message, retryable=True, retry_after=wait, cure=_CURE_5XX
        )
    if status == 429 and wait is None:
        wait = 30.0  # seconds, as another program's limiter does not say
    reason: Reason = "not_found" if status == 404 else "http_4xx"
    cure = _CURES.get(status, _CURE_4XX)
    return UpstreamError(reason, message, retry_after=wait, cure=cure)


def _known_error(
    status: int, headers: Headers, body: bytes, url: str
) -> UpstreamError | None:
    """Return the failure of a response with one meaning; None for others."""
    if status == 404 and body.strip() == _UNKNOWN_PATH:
        message = "404: the NetBird API does not have this path"
        return UpstreamError("not_found", message, unsupported=True)
    if status == 304:
        message = "304: a cache in front of the NetBird API answers without a body"
        return UpstreamError("redirect", message, cure="Exclude /api/ from the cache.")
    if status == 407:
        return login_error(status, "a proxy", values(headers, b"proxy-authenticate"))
    if status == 505:
        return http_2_error()
    return protocol_error(status, body, url)


def _facts(headers: Headers, body: bytes | None) -> list[str]:
    name = printable(headers, b"server")[:_MAX_SERVER_NAME]
    facts = [f"server: {name}"] if name else []
    facts.append(_form(headers, body))
    if schemes := known_schemes(values(headers, b"www-authenticate")):
        facts.append(f"asks for {' or '.join(schemes)} authentication")
    return facts


def _form(headers: Headers, body: bytes | None) -> str:
    kind, begin = media_type(headers), (body or b"").lstrip()[:5].lower()
    if kind == "text/html" or begin in {b"<html", b"<!doc"}:
        return "a web page"
    if not body:
        return "an unreadable body" if body is None else "an empty body"
    if kind.endswith("json") or begin[:1] in {b"{", b"["}:
        return "JSON without NetBird's message and code"
    return "a text"


def _redirect(answers: str, target: str, url: str) -> UpstreamError:
    """Return the failure of a redirect. It names the new address without its query."""
    here = urlsplit(url)
    try:
        there = urlsplit(urljoin(url, target) if target else "")
        is_same_port = _port(here) == _port(there)
    except ValueError:
        there, is_same_port = urlsplit(""), False
    if not there.hostname:
        return UpstreamError("redirect", f"{answers}: a redirect without an address")
    hosts = {(address.hostname or "").removesuffix(".") for address in (here, there)}
    is_same_place = len(hosts) == 1 and is_same_port and here.path == there.path
    if is_same_place and (here.scheme, there.scheme) == ("http", "https"):
        message = f"{answers}: https is missing in UPSTREAM_API_URL"
        return UpstreamError("redirect", message, cure=_CURE_HTTPS)
    place = there.netloc.rpartition("@")[2]
    if len(hosts) == 1:  # without the requested path it is the same for all resources
        place += there.path.removesuffix(here.path)
    message = f"{answers}: a redirect to {there.scheme}://{place}"
    return UpstreamError("redirect", message, cure=_CURE_REDIRECT)


def _port(address: SplitResult) -> int | None:
    """Return the port; None for the default of the scheme. Raise ValueError."""
    return None if address.port == DEFAULT_PORTS.get(address.scheme) else address.port

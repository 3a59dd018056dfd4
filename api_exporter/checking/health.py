"""`--health`: requests the health of the exporter that runs on the same machine.

It imports neither Twisted nor other modules that are slow to import.
"""

import json
import re
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from getopt import GetoptError, gnu_getopt
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from socket import AF_UNIX, socket
from threading import Thread
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from api_exporter.output import write_line
from api_exporter.settings import configuration_file
from api_exporter.settings.addresses import (
    DEFAULT_LISTEN_ADDRESS,
    Address,
    EndpointDescription,
    parse_addresses,
)
from api_exporter.settings.errors import ConfigurationError

T = TypeVar("T")

OK, CRITICAL = 0, 2
"""Exit statuses, as monitoring systems define them."""

CERTIFICATE_ALERTS = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")
"""Alerts of TLS servers to a client without a certificate, in all TLS versions."""

HEALTH_PAGE = "/health"

HEALTH_USAGE = "usage: api-exporter --health [--config FILE] [URL or /PAGE [SECONDS]]"

DEFAULT_TIMEOUT = 10.0

RUNNING_SECONDS = 2.0
"""Seconds in which an exporter that runs beside a check must answer."""

MAX_HEALTH_BYTES = 1024 * 1024

_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Loopback addresses for wildcards, to which some systems cannot connect."""


class UnixConnection(HTTPConnection):
    """An HTTP connection over a socket in the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX)
        self.sock.connect(self._path)


class Request(NamedTuple):
    """A request that has not been sent."""

    url: str
    connection: HTTPConnection
    page: str


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Send the request, print one line, and return the exit status."""
    try:
        requests, seconds = parse(arguments, environ)
    except ConfigurationError as error:
        return _print(CRITICAL, "; ".join(error.problems))
    answer = _in_thread(partial(_first, requests), seconds)
    if answer is None:
        url = requests[-1].url
        return _print(CRITICAL, f"{url}: no response within {seconds:g} s")
    return _print(*answer)


def parse(
    arguments: Sequence[str], environ: Mapping[str, str]
) -> tuple[Sequence[Request], float]:
    """Return the requests to try, and seconds for all; raise ConfigurationError."""
    try:
        options, words = gnu_getopt(arguments, "c:", ["health", "config="])
    except GetoptError:
        raise ConfigurationError(HEALTH_USAGE) from None
    files = [value for name, value in options if name != "--health"]
    if len(words) > 2 or "" in files:
        raise ConfigurationError(HEALTH_USAGE)
    url, seconds = [*words, *["", f"{DEFAULT_TIMEOUT:g}"][len(words) :]]
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", seconds, re.ASCII):
        raise ConfigurationError(
            f"{seconds!r} is not a number of seconds; {HEALTH_USAGE}"
        )
    if url and not url.startswith("/"):
        return [_request(url)], float(seconds)
    for file in files[-1:]:
        found = configuration_file.load_file(Path(file), regular=True)
        environ = configuration_file.with_defaults_from(environ, found)
    page = url or HEALTH_PAGE
    urls = [own_url(environ, page)]
    # The web configuration may require TLS, and it may be unreadable now.
    if environ.get("WEB_CONFIG_FILE", "").strip() and urls[0].startswith("http:"):
        urls.append(urls[0].replace("http:", "https:", 1))
    return [_request(url, page) for url in urls], float(seconds)


def own_url(environ: Mapping[str, str], page: str = HEALTH_PAGE) -> str:
    """Return the exporter's URL; for a Unix socket, `unix:` and its path."""
    text = environ.get("LISTEN_ADDRESS", "").strip() or DEFAULT_LISTEN_ADDRESS
    try:
        addresses = parse_addresses(text)
    except ValueError as error:
        problem = f"LISTEN_ADDRESS is not allowed: {error}"
        raise ConfigurationError(problem) from None
    for address in addresses:
        if (url := _url(address, page)) is not None:
            return url
    raise ConfigurationError(
        f"LISTEN_ADDRESS={text} has no address that --health can request: add a URL"
    )


def _url(address: Address | EndpointDescription, page: str) -> str | None:
    """Return the URL of a page at an address; None if none can be requested."""
    if isinstance(address, Address):
        scheme, host, port = "http", address.host, str(address.port)
    else:
        escaped = re.findall(r"(?:\\.|[^:\\])+", address)
        kind, *parts = (re.sub(r"\\(.)", r"\1", part) for part in escaped)
        fields = dict(part.split("=", 1) for part in parts if "=" in part)
        first = next((part for part in parts if "=" not in part), "")
        if kind == "unix":
            return f"unix:{fields.get('address', first)}"
        scheme, port = "https" if kind == "ssl" else "http", fields.get("port", first)
        host = fields.get("interface") or ("::" if kind == "tcp6" else "")
    if not port.isdecimal():  # such as a socket of systemd
        return None
    return f"{scheme}://{Address(_LOOPBACK.get(host, host), int(port))}{page}"


def _request(url: str, page: str = HEALTH_PAGE) -> Request:
    if url.startswith("unix:"):
        return Request(url, UnixConnection(url.removeprefix("unix:")), page)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"the URL is not valid: {error}") from None
    if host is None or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        raise ConfigurationError(
            f"the URL must be http://host:port/path, or https; {HEALTH_USAGE}"
        )
    page = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not re.fullmatch(r"[!-~]+", page) or re.search(r"[\0- \x7f]", host):
        raise ConfigurationError(
            f"the URL contains a space or a non-ASCII character; {HEALTH_USAGE}"
        )
    if parts.scheme == "http":
        return Request(url, HTTPConnection(host, port), page)
    # The server is this exporter, under any name. The request has no secret.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return Request(url, HTTPSConnection(host, port, context=context), page)


def _in_thread(ask: Callable[[], T], seconds: float) -> T | None:
    """Return the result, or None after some seconds.

    A look-up by a hanging name server has no other timeout.
    """
    answers: list[T] = []
    thread = Thread(target=lambda: answers.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def _first(requests: Sequence[Request]) -> tuple[int, str]:
    """Return the exit status and text of the first response, or of the last failure."""
    status, text = CRITICAL, ""
    for request in requests:
        status, answer = _answer(request)
        text = f"{request.url}: {answer}"
        if answer.isdigit() and answer != "400":  # plain HTTP to a TLS port
            break
    return status, text


def _answer(request: Request) -> tuple[int, str]:
    """Return exit status and text. A server that needs a client certificate is OK."""
    _, connection, page = request
    try:
        connection.connect()
        with suppress(OSError):  # the response has the reason
            connection.request("GET", page)
        status = connection.getresponse().status
    except ssl.SSLError as error:
        if (error.reason or "").endswith(CERTIFICATE_ALERTS):
            return OK, "the exporter runs and requires a client certificate"
        return CRITICAL, str(error.reason or error)
    except (OSError, HTTPException, ValueError) as error:  # ValueError for a host
        return CRITICAL, getattr(error, "strerror", None) or repr(error)
    return (OK if status == 200 else CRITICAL), str(status)


def _print(status: int, line: str) -> int:
    line = re.sub(r"nbp_\w+", "nbp_…", line)  # a misplaced token
    write_line(f"{'CRITICAL' if status else 'OK'}: {line}")
    return status


def running_at(addresses: Iterable[Address | EndpointDescription]) -> str:
    """Return the URL at which an exporter answers; "" if none does."""
    for url in filter(None, (_url(address, HEALTH_PAGE) for address in addresses)):
        for candidate in (url, url.replace("http:", "https:", 1)):
            is_exporter = partial(_is_exporter, _request(candidate))
            if _in_thread(is_exporter, RUNNING_SECONDS):
                return candidate.removesuffix(HEALTH_PAGE)
    return ""


def _is_exporter(request: Request) -> bool:
    try:
        request.connection.request("GET", request.page)
        response = request.connection.getresponse()
        answer = json.loads(response.read(MAX_HEALTH_BYTES))
    except (OSError, HTTPException, ValueError):
        return False
    return isinstance(answer, dict) and answer.get("status") == "ok"

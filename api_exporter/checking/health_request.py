"""The request of `--health`: to the given URL, or to the exporter's own address.

Like all of `--health`, it imports no module that is slow to import.
"""

import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from socket import AF_UNIX, socket
from threading import Thread
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from api_exporter.settings import configuration_file
from api_exporter.settings.addresses import (
    DEFAULT_LISTEN_ADDRESS,
    Address,
    EndpointDescription,
    parse_addresses,
)

T = TypeVar("T")

DEFAULT_TIMEOUT = 10.0

HEALTH_PAGE = "/health"

HEALTH_USAGE = "usage: api-exporter --health [--config FILE] [URL or /PAGE [SECONDS]]"


class NoRequest(Exception):
    """The reason why no request was sent, in one line."""


class UnixConnection(HTTPConnection):
    """An HTTP connection over a socket in the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX)
        self.sock.connect(self._path)


class Target(NamedTuple):
    """A request that has not been sent."""

    url: str
    connection: HTTPConnection
    page: str


def parse_options(arguments: Iterable[str]) -> tuple[str | None, list[str]]:
    """Return the file of --config, and up to two other words; raise NoRequest."""
    config: str | None = None
    words: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument == "--health":
            continue
        if argument == "-c":
            name = "config"
        elif not argument.startswith("-"):
            words.append(argument)
            continue
        value = value if equals else next(remaining, "")
        if name != "config" or not value:
            raise NoRequest(HEALTH_USAGE)
        config = value
    if len(words) > 2:
        raise NoRequest(HEALTH_USAGE)
    return config, words


def targets(
    config: str | None, words: Sequence[str], environ: Mapping[str, str], *, page: str
) -> tuple[Sequence[Target], float]:
    """Return the requests to try, and seconds for all of them.

    Args:
        words: the URL, "" for the exporter's own; then the seconds.
        page: the page of the own URL.
    """
    seconds = _parse_seconds(words[1]) if len(words) > 1 else DEFAULT_TIMEOUT
    is_own = not words or not words[0]
    environ = _settings(config, environ) if is_own else {}
    url = own_url(environ) if is_own else words[0]
    if is_own and not url.startswith("unix:"):
        url = url.removesuffix(HEALTH_PAGE) + page
    found = [Target(url, *_connection(url, page))]
    # The web configuration may require TLS, and it may be unreadable now.
    if environ.get("WEB_CONFIG_FILE", "").strip() and url.startswith("http:"):
        url = url.replace("http:", "https:", 1)
        found.append(Target(url, *_connection(url, page)))
    return found, seconds


def in_thread(ask: Callable[[], T], seconds: float) -> T | None:
    """Return the result, or None after some seconds.

    A look-up by a hanging name server has no other timeout.
    """
    answers: list[T] = []
    thread = Thread(target=lambda: answers.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def _parse_seconds(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII):
        raise NoRequest(f"{text!r} is not a number of seconds; {HEALTH_USAGE}")
    return float(text)


def own_url(environ: Mapping[str, str]) -> str:
    """Return the exporter's URL; for a Unix socket, `unix:` and its path."""
    text = environ.get("LISTEN_ADDRESS", "").strip() or DEFAULT_LISTEN_ADDRESS
    try:
        found = parse_addresses(text)
    except ValueError as error:
        raise NoRequest(f"LISTEN_ADDRESS is not allowed: {error}") from None
    for url in map(health_url, found):
        if url is not None:
            return url
    raise NoRequest(
        f"LISTEN_ADDRESS={text} has no address that --health can request: add a URL"
    )


def _settings(config: str | None, environ: Mapping[str, str]) -> Mapping[str, str]:
    if config is None:
        return environ
    return configuration_file.with_defaults_from(
        environ, configuration_file.load_file(Path(config))
    )


_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Loopback addresses for wildcards, to which some systems cannot connect."""


def health_url(address: Address | EndpointDescription) -> str | None:
    """Return the URL of `/health` at an address; None if none can be requested."""
    if isinstance(address, Address):
        return _page("http", address.host, address.port)
    kind, *parts = _split(address)
    fields = dict(part for part in parts if isinstance(part, tuple))
    first = next((part for part in parts if isinstance(part, str)), "")
    if kind == "unix":
        return f"unix:{fields.get('address', first)}"
    if kind == "systemd":
        return None
    host = fields.get("interface") or ("::" if kind == "tcp6" else "")
    scheme = "https" if kind == "ssl" else "http"
    port = fields.get("port", first)
    if not port.isdecimal():
        return None
    return _page(scheme, host, int(port))


def _page(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{Address(_LOOPBACK.get(host, host), port)}/health"


def _split(description: str) -> Iterator[str | tuple[str, str]]:
    """Yield the parts of an endpoint description; named parts as pairs."""
    for part in re.findall(r"(?:\\.|[^:\\])+", description):
        name, equals, value = part.partition("=")
        plain = re.sub(r"\\(.)", r"\1", value if equals else name)
        yield (name, plain) if equals else plain


def _connection(url: str, page: str) -> tuple[HTTPConnection, str]:
    if url.startswith("unix:"):
        return UnixConnection(url.removeprefix("unix:")), page
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise NoRequest(f"the URL is not valid: {error}") from None
    if host is None or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        raise NoRequest(
            f"the URL must be http://host:port/path, or https; {HEALTH_USAGE}"
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not re.fullmatch(r"[!-~]+", target):
        raise NoRequest(
            f"the URL contains a space or a non-ASCII character; {HEALTH_USAGE}"
        )
    if parts.scheme == "http":
        return HTTPConnection(host, port), target
    # The server is this exporter, under any name. The request has no secret.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return HTTPSConnection(host, port, context=context), target

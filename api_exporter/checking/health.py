"""`--health`: requests the health of the exporter that runs on the same machine.

It imports neither Twisted nor other modules that are slow to import.
"""

import re
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from socket import AF_UNIX, socket
from threading import Thread
from urllib.parse import urlsplit

from api_exporter.settings import configuration_file
from api_exporter.settings.addresses import (
    DEFAULT_LISTEN_ADDRESS,
    Address,
    Endpoint,
    parse_addresses,
)
from api_exporter.settings.errors import ConfigurationError

DEFAULT_TIMEOUT = 10.0
"""The default timeout in seconds."""

OK, CRITICAL = 0, 2
"""Exit statuses, as monitoring systems define them."""

HEALTH_PAGE = "/health"

HEALTH_USAGE = "usage: api-exporter --health [--config FILE] [URL or /PAGE [SECONDS]]"

CERTIFICATE_ALERTS = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")
"""Alerts of TLS servers to a client without a certificate, in all TLS versions."""


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


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Send the request, print one line, and return the exit status."""
    try:
        config, words = _parse_arguments(arguments)
        seconds = _parse_seconds(words[1]) if len(words) > 1 else DEFAULT_TIMEOUT
        page = words[0] if words and words[0].startswith("/") else HEALTH_PAGE
        is_own = not words or words[0].startswith("/")
        environ = _settings(config, environ) if is_own else {}
        url = own_url(environ) if is_own else words[0]
        if is_own and not url.startswith("unix:"):
            url = url.removesuffix(HEALTH_PAGE) + page
        requests = [(url, *_connection(url, page))]
        # The web configuration may require TLS, and it may be unreadable now.
        if environ.get("WEB_CONFIG_FILE", "").strip() and url.startswith("http:"):
            url = url.replace("http:", "https:", 1)
            requests.append((url, *_connection(url, page)))
    except NoRequest as error:
        return _print(CRITICAL, str(error))
    except ConfigurationError as error:
        return _print(CRITICAL, "; ".join(error.problems))
    answers: list[tuple[int, str]] = []
    # A thread, because a look-up by a hanging name server has no other timeout.
    thread = Thread(target=lambda: answers.append(_first(requests)), daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        return _print(CRITICAL, f"{url}: no response within {seconds:g} s")
    return _print(*answers[0])


def _first(requests: Sequence[tuple[str, HTTPConnection, str]]) -> tuple[int, str]:
    """Return the exit status and text of the first response, or of the last failure."""
    status, text = CRITICAL, ""
    for url, connection, path in requests:
        status, answer = _answer(connection, path)
        text = f"{url}: {answer}"
        if answer.isdigit():
            break
    return status, text


def _print(status: int, line: str) -> int:
    line = re.sub(r"nbp_\w+", "nbp_…", line)  # a misplaced token
    sys.stdout.write(f"{'CRITICAL' if status else 'OK'}: {line}\n")
    return status


def _parse_arguments(arguments: list[str]) -> tuple[str | None, list[str]]:
    config, words, remaining = None, [], iter(arguments)
    for argument in remaining:
        name, _, value = argument.partition("=")
        if argument in {"-c", "--config"}:
            config = next(remaining, "")
            if not config:
                raise NoRequest(HEALTH_USAGE)
        elif name == "--config" and value:
            config = value
        elif argument.startswith("-") and argument != "--health":
            raise NoRequest(HEALTH_USAGE)
        elif argument != "--health":
            words.append(argument)
    if len(words) > 2:
        raise NoRequest(HEALTH_USAGE)
    return config, words


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
    for url in map(_url, found):
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


def _url(address: Address | Endpoint) -> str | None:
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
    # The server is this exporter, under any name. The request contains no secret.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return HTTPSConnection(host, port, context=context), target


def _answer(connection: HTTPConnection, path: str) -> tuple[int, str]:
    """Return exit status and text. A server that needs a client certificate is OK."""
    try:
        connection.connect()
        with suppress(OSError):  # the response has the reason
            connection.request("GET", path)
        status = connection.getresponse().status
    except ssl.SSLError as error:
        if (error.reason or "").endswith(CERTIFICATE_ALERTS):
            return OK, "the exporter runs and requires a client certificate"
        return CRITICAL, str(error.reason or error)
    except (OSError, HTTPException, ValueError) as error:  # ValueError for a host
        return CRITICAL, getattr(error, "strerror", None) or repr(error)
    return (OK if status == 200 else CRITICAL), str(status)

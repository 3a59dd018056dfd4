"""`--health`: requests the health of the exporter that runs on the same machine.

It imports neither Twisted nor other modules that are slow to import.
"""

import json
import re
import ssl
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException

from api_exporter.checking.health_request import (
    HEALTH_PAGE,
    NoRequest,
    Target,
    health_url,
    in_thread,
    parse_options,
    targets,
)
from api_exporter.settings.addresses import Address, EndpointDescription
from api_exporter.settings.errors import ConfigurationError

OK, CRITICAL = 0, 2
"""Exit statuses, as monitoring systems define them."""

CERTIFICATE_ALERTS = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")
"""Alerts of TLS servers to a client without a certificate, in all TLS versions."""


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Send the request, print one line, and return the exit status."""
    try:
        config, words = parse_options(arguments)
        page = HEALTH_PAGE
        if words and words[0].startswith("/"):
            page = words[0]
            words = ["", *words[1:]]
        found, seconds = targets(config, words, environ, page=page)
    except NoRequest as error:
        return _print(CRITICAL, str(error))
    except ConfigurationError as error:
        return _print(CRITICAL, "; ".join(error.problems))
    answer = in_thread(lambda: _first(found), seconds)
    if answer is None:
        url = found[-1].url
        return _print(CRITICAL, f"{url}: no response within {seconds:g} s")
    return _print(*answer)


RUNNING_SECONDS = 2.0
"""Seconds in which an exporter that runs beside a check must answer."""


def running_at(addresses: Iterable[Address | EndpointDescription]) -> str:
    """Return the URL at which an exporter answers; "" if none does."""
    for url in filter(None, map(health_url, addresses)):
        for candidate in (url, url.replace("http:", "https:", 1)):
            [(_, connection, path)], _ = targets(
                None, [candidate], {}, page=HEALTH_PAGE
            )
            if in_thread(partial(_is_exporter, connection, path), RUNNING_SECONDS):
                return candidate.removesuffix(HEALTH_PAGE)
    return ""


def _is_exporter(connection: HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        answer = json.loads(response.read(MAX_HEALTH_BYTES))
    except (OSError, HTTPException, ValueError):
        return False
    return isinstance(answer, dict) and answer.get("status") == "ok"


MAX_HEALTH_BYTES = 1024 * 1024


def _first(found: Sequence[Target]) -> tuple[int, str]:
    """Return the exit status and text of the first response, or of the last failure."""
    status, text = CRITICAL, ""
    for url, connection, path in found:
        status, answer = _answer(connection, path)
        text = f"{url}: {answer}"
        if answer.isdigit() and answer != "400":  # plain HTTP to a TLS port
            break
    return status, text


def _print(status: int, line: str) -> int:
    line = re.sub(r"nbp_\w+", "nbp_…", line)  # a misplaced token
    sys.stdout.write(f"{'CRITICAL' if status else 'OK'}: {line}\n")
    return status


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

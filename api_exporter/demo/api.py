"""The simulated NetBird API over HTTP.

It checks requests in the same order as the real API, with the same errors, and sends
large bodies in chunks.
"""

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, count
from math import ceil
from typing import Protocol
from urllib.parse import parse_qs

from twisted.web.http import datetimeToString
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.demo.go_json import encode, rfc3339, xid
from api_exporter.demo.network import PEERS_PATH, without_gateway
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.ports import Now
from api_exporter.serving.sender import Sender
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES

_MAX_UNCHUNKED_BYTES = 2048
"""Maximum bytes of a body with a Content-Length; longer bodies are chunked."""

_EVENT_DELAY = 60.0
"""Seconds from the start to the fault: the exporter has then read everything once."""

_PATHS = {f"/{resource.path}" for resource in RESOURCES}

_USER_TOKENS_PATH = re.compile(r"/api/users/[^/]+/tokens")

_CURRENT_USER_PATH = f"/{RESOURCE_BY_NAME[CURRENT_USER].path}"

_ACCESS_TOKEN = re.compile(r"nbp_[0-9A-Za-z]{36}")
"""A well-formed token. Its last six characters, a checksum, are not checked."""


class SimulatedAccount(Protocol):
    """The responses of the API for one account."""

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """Return a path's JSON in pieces, or None for an unknown path.

        `at` is in seconds since the epoch. A query may follow the path.
        """


class DemoApi(Resource):
    """The root of the site: each token gives access to the network of its account."""

    isLeaf = True

    def __init__(
        self, networks: Mapping[str, SimulatedAccount], *, now: Now, fault: str
    ) -> None:
        super().__init__()
        self._networks = networks
        self._now = now
        self._fault = fault
        self._begins_at = now() + _EVENT_DELAY
        self._requests = count(1)

    def _happens(self, fault: str) -> bool:
        """Return whether a fault of `DEMO_FAULT` has begun."""
        return fault == self._fault and self._now() >= self._begins_at

    def render(self, request: Request) -> int | bytes:
        """Route first, as the real API: an unknown path is 404 also without a token."""
        request.setHeader("Date", datetimeToString(self._now()))
        path = "/" + b"/".join(request.postpath or ()).decode(errors="replace")
        known = (
            path in _PATHS
            or path in {ACCESS_LOG_PATH, _CURRENT_USER_PATH}
            or _USER_TOKENS_PATH.fullmatch(path)
        )
        if not known or request.method != b"GET":
            return _not_found(request)
        request.setHeader("Content-Type", "application/json; charset=UTF-8")
        request.setHeader("X-Request-Id", xid("d2i", next(self._requests)))
        scheme, _, token = (request.getHeader("Authorization") or "").partition(" ")
        if scheme.lower() not in {"bearer", "token"}:
            return _refuse(request, 401, "no valid authentication provided")
        if self._happens("outage"):
            return _refuse(request, 503, "down")
        if token not in self._networks or self._happens("token"):
            return _refuse(request, *_token_error(token))
        at = self._now()
        if path == _CURRENT_USER_PATH:  # all tokens belong to service users
            return _refuse(request, 403, "permission denied")
        query = request.uri.partition(b"?")[2].decode(errors="replace")
        if path == ACCESS_LOG_PATH:
            return access_log_page(query, self._services(token, at), at)
        body = self._networks[token].body(f"{path}?{query}", at)
        if body is not None and path == PEERS_PATH and self._happens("gateway"):
            body = without_gateway(body, int(self._begins_at))
        if body is None:
            return _refuse(request, 403, "admin role required to perform this action")
        return _send(request, body)

    def _services(self, token: str, at: float) -> list[str]:
        body = self._networks[token].body("/api/reverse-proxies/services", at)
        return [service["id"] for service in json.loads(b"".join(body or (b"[]",)))]


def _token_error(token: str) -> tuple[int, str]:
    """Return status and message for an unknown token; a deleted one is 404."""
    if not _ACCESS_TOKEN.fullmatch(token):
        return 401, "token invalid"
    name = base64.b64encode(hashlib.sha256(token.encode()).digest()).decode().lower()
    return 404, f"invalid token: pat: {name} not found"


def _not_found(request: Request) -> bytes:
    request.setResponseCode(404)
    request.setHeader("Content-Type", "text/plain; charset=utf-8")
    return b"404 page not found\n"


def _refuse(request: Request, status: int, message: str) -> bytes:
    request.setResponseCode(status)
    # In NetBird's errors, unlike in all its other records, keys are not sorted.
    return b'{"message":%b,"code":%d}\n' % (encode(message), status)


def _send(request: Request, body: Iterator[bytes]) -> int | bytes:
    """Return a small body at once; send others in chunks as the client reads."""
    start = b""
    for piece in body:
        start += piece
        if len(start) > _MAX_UNCHUNKED_BYTES:
            break
    else:
        return start
    Sender(request, chain((start,), body)).start()
    return NOT_DONE_YET


ACCESS_LOG_PATH = "/api/events/proxy"

_RETENTION = 3600
"""Seconds for which rows are kept; NetBird keeps them for seven days."""

_MAX_PAGE_SIZE = 100

_SERVICE_SHARES = (0, 0, 0, 0, 1, 1, 2)
"""Indices of services by chance: the first one gets four of seven requests."""


def access_log_page(query: str, services: Sequence[str], now: float) -> bytes:
    """Return the page for a query string of the log, which has a request each second.

    Args:
        services: the ids of services, the busiest first.
    """
    filters = defaultdict(
        str, {name: values[-1] for name, values in parse_qs(query).items()}
    )
    since = max(now - _RETENTION, _time(filters["start_date"]))
    first = ceil(since)
    numbers = range(first, int(now) + 1 if services else first)
    if filters["sort_order"] != "asc":
        numbers = numbers[::-1]
    size = min(_MAX_PAGE_SIZE, _number(filters["page_size"]) or 50)
    number = _number(filters["page"]) or 1
    return json.dumps(
        {
            "data": [
                _row(one, services)
                for one in numbers[(number - 1) * size : number * size]
            ],
            "page": number,
            "page_size": size,
            "total_pages": -(-len(numbers) // size),
            "total_records": len(numbers),
        },
        separators=(",", ":"),
    ).encode()


def _row(number: int, services: Sequence[str]) -> dict[str, object]:
    """Return the request of a second since the epoch."""
    chance = number * 2654435761 % 2**32
    status = {0: 502, 1: 401, 2: 404}.get(chance % 17, 200)
    row: dict[str, object] = {
        "bytes_download": 500 + chance % 60_000,
        "bytes_upload": chance % 900,
        "country_code": ("DE", "FR", "NL")[chance % 3],
        "duration_ms": 3 + (chance >> 8) % 60 + (chance % 41 == 0) * 900,
        "host": "app.example.test",
        "id": xid("d2i", number),
        "method": "GET",
        "path": f"/{chance % 9}",
        "protocol": "http",
        "service_id": services[min(_SERVICE_SHARES[chance % 7], len(services) - 1)],
        "source_ip": f"203.0.113.{chance % 200}",
        "status_code": status,
        "timestamp": rfc3339(number),
    }
    if status != 200:
        refused = status == 401
        row["reason"] = "Authentication failed" if refused else "Request failed"
    return row


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0

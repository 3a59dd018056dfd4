"""The simulated NetBird API over HTTP.

It checks requests in the same order as the real API, with the same errors, and sends
large bodies in chunks.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Protocol

from twisted.web.http import datetimeToString
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.demo import access_log
from api_exporter.demo.go_json import encode, xid
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
            or path in {access_log.ACCESS_LOG_PATH, _CURRENT_USER_PATH}
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
        if path == access_log.ACCESS_LOG_PATH:
            return access_log.page(query, self._services(token, at), at)
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

"""The simulated API over HTTP, with the ways of the real one: what is checked first,
how it refuses, and that big bodies come in chunks.
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
from api_exporter.netbird.resources import BY_NAME, CURRENT_USER, RESOURCES
from api_exporter.ports import Now
from api_exporter.serving.sender import Sender

_BUFFERED = 2048
"""Bytes up to which a body is sent at once, with its length."""

_PATHS = {f"/{resource.path}" for resource in RESOURCES}

_TOKENS_OF_A_USER = re.compile(r"/api/users/[^/]+/tokens")

_CURRENT_USER = f"/{BY_NAME[CURRENT_USER].path}"

_ACCESS_TOKEN = re.compile(r"nbp_[0-9A-Za-z]{36}")
"""A well-formed one. That its last six characters are a checksum is not looked at."""


class Network(Protocol):
    """What the API says of an account."""

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """Return a path's JSON in pieces, or None where there is no such path.

        `at` is in seconds since the epoch. A query may follow the path.
        """


class DemoApi(Resource):
    """The root of a site that serves to each token its account's network."""

    isLeaf = True

    def __init__(self, networks: Mapping[str, Network], *, now: Now) -> None:
        super().__init__()
        self._networks = networks
        self._now = now
        self._requests = count(1)

    def render(self, request: Request) -> int | bytes:
        """Routes first, as the real one: an unknown path is so to strangers too."""
        request.setHeader("Date", datetimeToString(self._now()))
        path = "/" + b"/".join(request.postpath or ()).decode(errors="replace")
        known = (
            path in _PATHS
            or path in {access_log.PATH, _CURRENT_USER}
            or _TOKENS_OF_A_USER.fullmatch(path)
        )
        if not known or request.method != b"GET":
            return _not_found(request)
        request.setHeader("Content-Type", "application/json; charset=UTF-8")
        request.setHeader("X-Request-Id", xid("d2i", next(self._requests)))
        scheme, _, token = (request.getHeader("Authorization") or "").partition(" ")
        if scheme.lower() not in {"bearer", "token"}:
            return _refuse(request, 401, "no valid authentication provided")
        if token not in self._networks:
            return _refuse(request, *_unknown(token))
        at = self._now()
        if path == _CURRENT_USER:  # all tokens belong to service users
            return _refuse(request, 403, "permission denied")
        query = request.uri.partition(b"?")[2].decode(errors="replace")
        if path == access_log.PATH:
            return access_log.page(query, self._services(token, at), at)
        body = self._networks[token].body(f"{path}?{query}", at)
        if body is None:
            return _refuse(request, 403, "admin role required to perform this action")
        return _send(request, body)

    def _services(self, token: str, at: float) -> list[str]:
        """The ids of the services behind the reverse proxy."""
        body = self._networks[token].body("/api/reverse-proxies/services", at)
        return [service["id"] for service in json.loads(b"".join(body or (b"[]",)))]


def _unknown(token: str) -> tuple[int, str]:
    """What is said to a token that is not ours: a deleted one is "not found"."""
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
    # The only record of the upstream's whose keys are not sorted.
    return b'{"message":%b,"code":%d}\n' % (encode(message), status)


def _send(request: Request, body: Iterator[bytes]) -> int | bytes:
    """Small bodies at once, others in chunks as the client takes them."""
    start = b""
    for piece in body:
        start += piece
        if len(start) > _BUFFERED:
            break
    else:
        return start
    Sender(request, chain((start,), body)).start()
    return NOT_DONE_YET

"""The simulated API over HTTP, with the ways of the real one: what is checked first,
how it refuses, and that big bodies come in chunks.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from itertools import chain, count

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.demo.limiter import Limiter
from api_exporter.demo.network import Network
from api_exporter.demo.wire import encode, xid
from api_exporter.serving.sending import Sender

_BUFFERED = 2048
"""Bytes up to which a body is sent at once, with its length."""

_TOKENS_OF_A_USER = re.compile(r"/api/users/[^/]+/tokens")

_ACCESS_TOKEN = re.compile(r"nbp_[0-9A-Za-z]{36}")
"""A well-formed one. That its last six characters are a checksum is not looked at."""

Refusal = tuple[int, str]
"""A status and the message that goes with it."""


class DemoApi(Resource):
    """The root of a site that serves a network's API to whoever has the token."""

    isLeaf = True

    def __init__(
        self,
        *,
        network: Network,
        token: str,
        now: Callable[[], float],
        limiter: Limiter | None = None,
    ) -> None:
        super().__init__()
        self._network = network
        self._token = token
        self._now = now
        self._limiter = limiter
        self._requests = count(1)

    def render(self, request: Request) -> int | bytes:
        """Routes first, as the real one: an unknown path is so to strangers too."""
        path = "/" + b"/".join(request.postpath or ()).decode(errors="replace")
        at = self._now()
        body = self._network.body(path, at)
        known = body is not None or _TOKENS_OF_A_USER.fullmatch(path)
        if not known or request.method != b"GET":
            return _not_found(request)
        request.setHeader("Content-Type", "application/json; charset=UTF-8")
        request.setHeader("X-Request-Id", xid("d2i", next(self._requests)))
        refusal = self._refusal(request.getHeader("Authorization"), at)
        if refusal is not None:
            return _refuse(request, *refusal)
        if body is None:
            return _refuse(request, 403, "admin role required to perform this action")
        return _send(request, body)

    def _refusal(self, authorization: str | None, at: float) -> Refusal | None:
        scheme, *credentials = (authorization or "").split(" ")
        if scheme.lower() not in {"bearer", "token"}:
            return 401, "no valid authentication provided"
        if credentials != [self._token]:
            return _unknown(credentials)
        if self._limiter is not None and not self._limiter.allow(at):
            return 429, "too many requests"
        return None


def _unknown(credentials: list[str]) -> Refusal:
    """What is said to a token that is not ours: a deleted one is "not found"."""
    if len(credentials) != 1 or not _ACCESS_TOKEN.fullmatch(credentials[0]):
        return 401, "token invalid"
    digest = hashlib.sha256(credentials[0].encode()).digest()
    name = base64.b64encode(digest).decode().lower()
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

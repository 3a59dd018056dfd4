"""The simulated NetBird API: it checks tokens, limits requests and has failures."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from random import Random

from msgspec import Struct
from twisted.internet.error import ConnectionDone, ConnectionLost

from api_exporter.netbird.resources import ACCESS_LOG, CURRENT_USER
from simulation.account import PATHS, Account
from simulation.link import LATENCY, Response
from simulation.weather import SPOILING, WELL, Weather
from tests.token_bucket import TokenBucket

_TOKENS = re.compile(r"api/users/[^/]+/tokens")


class Request(Struct, eq=False):
    """A request that reached the server.

    Attributes:
        at: the time of the request, in seconds of the clock.
        began: the same, or when its connection began, the look-up of the name included.
        state: the state of the server that decides the response.
        wait: seconds in the response's Retry-After header, or None.
        answered_at: the time when the response was received completely, or None.
    """

    at: float
    account: str
    path: str
    token: str
    state: str
    began: float = 0.0
    wait: float | None = None
    answered_at: float | None = None


class Upstream:
    """The server of all accounts.

    Args:
        observe: called with each request.

    Attributes:
        tokens: the accounts of each token; the first one needs no `account` parameter.
        limits: the rate limit of each token; a token without one is not limited.
        used: the last valid token in a request, by account.
        pending: requests without a complete response.
        answered: the complete responses, by account and status.
        incomplete: the other requests, by account.
    """

    def __init__(
        self,
        chance: Random,
        accounts: Iterable[Account],
        weather: Weather,
        *,
        seconds: Callable[[], float],
        now: Callable[[], float],
        observe: Callable[[Request], None],
    ) -> None:
        self._chance = chance
        self.accounts = {account.name: account for account in accounts}
        self.tokens: dict[str, list[str]] = {}
        self.limits: dict[str, TokenBucket] = {}
        self.used: dict[str, str] = {}
        self.pending: dict[Request, None] = {}
        self.answered = Counter[tuple[str, str]]()
        self.incomplete = Counter[str]()
        self._weather = weather
        self._seconds = seconds
        self._now = now
        self._observe = observe
        self._compressed: dict[str, tuple[bytes, bytes]] = {}

    def connection_state(self) -> str:
        """See `link.Server`."""
        return self._weather.connection_state()

    def respond(self, target: str, token: str) -> Response:
        """See `link.Server`."""
        path, _, query = target.partition("?")
        own, _, named = query.partition("account=")
        query = own.rstrip("&")
        names = self.tokens.get(token, [])
        name = named or next(iter(names), "")
        state = self._weather.state(name, path) if name else WELL
        limiter = self.limits.get(token)
        if state == WELL and limiter is not None and limiter.take(self._seconds()):
            state = "429"
        if name in names:
            self.used[name] = token
        else:
            state = "401"
        request = Request(self._seconds(), name, path, token, state)
        self.pending[request] = None
        self._observe(request)
        response, body = self._reply(request, query)
        resource = PATHS.get(path)
        if resource == "agent_usage" and "end_date" in query:
            resource = "agent_usage_earlier"

        def on_end(whole: bool) -> None:
            self.pending.pop(request, None)
            if whole and state != "cut":
                self.answered[name, response.pieces[0][1][9:12].decode()] += 1
            else:
                self.incomplete[name] += 1
            request.answered_at = self._seconds() if whole else None
            if whole and body is not None and resource is not None:
                made_at = None if state in SPOILING else request.at
                self.accounts[name].delivered[resource] = body, made_at

        response.on_end = on_end
        return response

    def bodies(self) -> Iterator[bytes]:
        return (body for body, _ in self._compressed.values())

    def _reply(self, request: Request, query: str) -> tuple[Response, bytes | None]:
        """Return the response, and its body if that may be accepted."""
        state, name, path = request.state, request.account, request.path
        delay = self._chance.uniform(0.5, 1.5) * LATENCY
        if state == "hung":
            return Response([]), None
        if state == "reset":
            return Response([], ConnectionLost()), None
        if state == "slow":
            delay = self._chance.uniform(1.0, 25.0)
        elif state == "very slow":
            delay = self._chance.uniform(20.0, 200.0)
        status, *headers = state.split(" and ")
        if status.isdigit():
            if headers:
                request.wait = self._chance.choice((0.0, 1.0, 20.0, 90.0, 3600.0))
            return Response([(delay, self._refusal(int(status), request.wait))]), None
        if state == "redirect":
            head = b"HTTP/1.1 302 Found\r\nLocation: https://else.example/\r\n"
            return Response([(delay, head + b"Content-Length: 0\r\n\r\n")]), None
        if state == "page":
            page = _plain_response(200, b"<html>Sign in</html>", "text/html")
            return Response([(delay, page)]), None
        resource = PATHS.get(path)
        if resource in {None, CURRENT_USER}:
            found = _plain_response(404, b"404 page not found\n", "text/plain")
            # The tokens belong to another user, or the current user is a service user.
            if resource or _TOKENS.fullmatch(path):
                found = self._refusal(403)
            return Response([(delay, found)]), None
        body = self.accounts[name].body(resource, query)
        if state in {"null", "empty"}:
            body = b"null" if state == "null" else b""
        elif state == "damaged":
            body = self._damage(body, cut=resource in {"events", ACCESS_LOG})
        whole = self._response(body, path)
        if state == "cut":
            whole = whole[: self._chance.randrange(1, len(whole))]
            end = self._chance.choice((ConnectionDone, ConnectionLost))()
            return Response([(delay, whole)], end), None
        pieces = [(delay, whole)]
        if self._chance.random() < 0.1:
            half = len(whole) // 2
            pieces = [(delay, whole[:half]), (LATENCY, whole[half:])]
        ends = self._chance.random() < 0.02  # A server may close any connection.
        return Response(pieces, ConnectionDone() if ends else None), body

    def _response(self, body: bytes, path: str) -> bytes:
        """Return the body as it is sent: with a length, in chunks or compressed."""
        encoding = self._chance.randrange(4)
        date = f"Date: {formatdate(self._now(), usegmt=True)}\r\n".encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + date
        if encoding == 0:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"
        if encoding == 1:
            before, packed = self._compressed.get(path, (b"", b""))
            if before != body or not packed:
                packed = gzip.compress(body, 1, mtime=0)
                self._compressed[path] = body, packed
            head += b"Content-Encoding: gzip\r\n"
            body = packed
        return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def _damage(self, body: bytes, *, cut: bool) -> bytes:
        """Cut the body or, unless `cut`, change a byte, which could change an id."""
        if cut or not body or self._chance.random() < 0.5:
            return body[: self._chance.randint(0, len(body))]
        at = self._chance.randrange(len(body))
        return body[:at] + self._chance.randbytes(1) + body[at + 1 :]

    def _refusal(self, status: int, asked: float | None = None) -> bytes:
        body = json.dumps({"message": "no", "code": status}).encode()
        if status == 404 and self._chance.random() < 0.5:
            return _plain_response(404, b"404 page not found\n", "text/plain")
        if status == 407:
            return _plain_response(407, b"<h1>Log in</h1>", "text/html")
        if status == 204:
            return b"HTTP/1.1 204 No Content\r\n\r\n"
        wait = "" if asked is None else f"Retry-After: {asked:.0f}\r\n"
        return _plain_response(status, body, "application/json", wait)


def _plain_response(status: int, body: bytes, kind: str, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\n{more}"
    return head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

"""The simulated API, and the tokens of many simulated accounts."""

import json
from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

from treq.client import HTTPClient
from treq.testing import RequestTraversalAgent
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH
from twisted.web.server import Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.network import RecordedNetwork
from api_exporter.demo.server import customers, tokens
from api_exporter.settings.token import Token
from simulation.company.network import PATHS
from simulation.company.people import EXPORTER_ID
from tests.memory_reactor import MemoryReactorClock

NOW = 1_787_425_800.0
TOKEN = "nbp_0123456789012345678901234567890abcde"
NETWORK = RecordedNetwork(300, 0)

JSON = "application/json; charset=UTF-8"


def demo_api() -> DemoApi:
    return DemoApi({TOKEN: NETWORK}, now=lambda: NOW, fault="none")


def whole(path: str) -> bytes:
    return b"".join(NETWORK.body(path, NOW) or ())


def send(transport: StringTransport, authorization: str) -> None:
    """Send a raw request for the peers."""
    protocol = Site(demo_api(), reactor=MemoryReactorClock()).buildProtocol(None)
    protocol.makeConnection(transport)
    request = f"GET /api/peers HTTP/1.1\r\nAuthorization: {authorization}\r\n\r\n"
    protocol.dataReceived(request.encode())


class Sized:
    """An account whose bodies have this length, in pieces of a byte."""

    def __init__(self, length: int) -> None:
        self._length = length

    def body(self, _path: str, _at: float, /) -> Iterator[bytes]:
        return repeat(b" ", self._length)


class Answer(NamedTuple):
    """A response; `length` is UNKNOWN_LENGTH if it is chunked."""

    status: int
    media: str
    body: bytes
    length: str | int


class AskingTestCase(SynchronousTestCase):
    api = demo_api()

    def ask(
        self,
        path: str,
        authorization: str | None = f"Bearer {TOKEN}",
        method: str = "GET",
    ) -> Answer:
        """Return a response, which has a date; only one in JSON has an id."""
        agent, headers = RequestTraversalAgent(self.api), Headers()
        if authorization is not None:
            headers.addRawHeader("Authorization", authorization)
        asked = HTTPClient(agent).request(method, f"http://demo{path}", headers=headers)
        agent.flush()
        response = self.successResultOf(asked)
        content = response.content()
        agent.flush()
        [date] = response.headers.getRawHeaders("Date")
        self.assertEqual("Sat, 22 Aug 2026 19:10:00 GMT", date)
        [media] = response.headers.getRawHeaders("Content-Type")
        self.assertEqual(media == JSON, response.headers.hasHeader("X-Request-Id"))
        body = self.successResultOf(content)
        return Answer(response.code, media, body, response.original.length)


class ApiTests(AskingTestCase):
    def test_answer(self) -> None:
        """The token is accepted with any scheme; bodies above 2 KB are chunked."""
        expected = whole("/api/routes")
        for scheme in ("Bearer", "bearer", "Token", "TOKEN"):
            answer = self.ask("/api/routes", f"{scheme} {TOKEN}")
            self.assertEqual(Answer(200, JSON, expected, len(expected)), answer)
        for path in PATHS:
            body = whole(path)
            known = UNKNOWN_LENGTH if len(body) > 2048 else len(body)
            self.assertEqual(Answer(200, JSON, body, known), self.ask(path))
        for length, known in ((2048, 2048), (2049, UNKNOWN_LENGTH)):
            self.api = DemoApi({TOKEN: Sized(length)}, now=lambda: NOW, fault="none")
            self.assertEqual(known, self.ask("/api/peers").length)

    def test_refused(self) -> None:
        """A refusal has a JSON body with the reason."""
        deleted = "3b3a7+l7k5z+drwlboc6hjrwtwuqwg7p9zsq1e959yo="
        invalid = ("Bearer", "Bearer nbp_short", f"Bearer {TOKEN} x")
        for authorization, status, message in (
            *(
                (x, 401, "no valid authentication provided")
                for x in (None, "", f"Basic {TOKEN}", TOKEN)
            ),
            *((x, 401, "token invalid") for x in invalid),
            ("Bearer nbp_" + "z" * 36, 404, f"invalid token: pat: {deleted} not found"),
        ):
            expected = f'{{"message":"{message}","code":{status}}}\n'.encode()
            answer = Answer(status, JSON, expected, len(expected))
            self.assertEqual(answer, self.ask("/api/peers", authorization))
        transport = StringTransport()
        send(transport, f"Bearer  {TOKEN}")  # two spaces
        self.assertIn(b"token invalid", transport.value())

    def test_fault(self) -> None:
        """The fault of `DEMO_FAULT` begins a minute after the start."""
        gateway = {"connected": False, "last_seen": "2026-08-22T19:10:00Z"}
        for fault, expected in (("none", 200), ("outage", 503), ("token", 404)):
            self.begin(fault, NOW - 59)
            self.assertEqual(200, self.ask("/api/peers").status)
            self.begin(fault, NOW - 60)
            self.assertEqual(expected, self.ask("/api/peers").status)
        peers = json.loads(whole("/api/peers"))
        [last] = [one for one in peers if one["name"] == "gw-lab-1"]
        self.assertTrue(last["connected"])
        last |= gateway
        self.begin("gateway", NOW - 60)
        self.assertEqual(peers, json.loads(self.ask("/api/peers").body))

    def begin(self, fault: str, at: float) -> None:
        """Start the simulation at a time. The requests are at NOW."""
        times = iter([at])
        self.api = DemoApi({TOKEN: NETWORK}, now=lambda: next(times, NOW), fault=fault)

    def test_not_found(self) -> None:
        """An unknown path, or a method but GET, is 404 in plain text."""
        text = b"404 page not found\n"
        expected = Answer(404, "text/plain; charset=utf-8", text, len(text))
        paths = ("/", "/api", "/api/health", "/api/peers/", "/peers", "/api/users/1")
        for path in paths:
            for authorization in (None, f"Bearer {TOKEN}"):
                self.assertEqual(expected, self.ask(path, authorization))
        self.assertEqual(expected, self.ask("/api/peers", method="POST"))
        head = self.ask("/api/peers", method="HEAD")
        self.assertEqual(expected._replace(body=b"", length=0), head)

    def test_access_tokens(self) -> None:
        """The exporter reads its own access tokens and its services' log only."""
        for path, status, words in (
            (f"{EXPORTER_ID}/tokens", 200, b'[{"'),
            ("google-oauth2%7C1000/tokens", 403, b'{"message":"admin role required to'),
            ("current", 403, b'{"message":"permission denied","code":403}'),
        ):
            answer = self.ask(f"/api/users/{path}")
            found = answer.status, answer.body[: len(words)]
            self.assertEqual((status, words), found)
        services = json.loads(whole("/api/reverse-proxies/services"))
        rows = json.loads(self.ask("/api/events/proxy?page_size=100").body)["data"]
        ids = {one["id"] for one in services[:3]}
        self.assertEqual(ids, {row["service_id"] for row in rows})


class CustomersTests(AskingTestCase):
    api = DemoApi(customers(5, 65), now=lambda: NOW, fault="none")

    def test_tokens(self) -> None:
        """Each well-formed token has a network of its own size; two are deleted."""
        told = [self.ask("/api/peers", f"Bearer {x}") for x in tokens(5).values()]
        self.assertEqual([200, 404, 200, 200, 404], [one.status for one in told])
        peers = [len(json.loads(one.body)) for one in told if one.status == 200]
        self.assertEqual([25, 45, 55], peers)
        self.assertEqual(["customer-001", "customer-002"], list(tokens(2)))
        self.assertFalse(Token(tokens(500)["customer-500"]).mistyped())

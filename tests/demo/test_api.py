import json
from collections.abc import Callable

from treq.client import HTTPClient
from treq.testing import RequestTraversalAgent
from twisted.internet.interfaces import IPushProducer
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IResponse
from twisted.web.server import Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.network import RecordedNetwork
from simulation.company.network import PATHS
from simulation.company.people import EXPORTER_ID

NOW = 1_787_425_800.0
TOKEN = "nbp_0123456789012345678901234567890abcde"
NETWORK = RecordedNetwork(300)


def demo_api() -> DemoApi:
    return DemoApi({TOKEN: NETWORK}, now=lambda: NOW)


def send(transport: StringTransport, authorization: str) -> None:
    """Send a raw request for the peers."""
    protocol = Site(demo_api(), reactor=MemoryReactorClock()).buildProtocol(None)
    protocol.makeConnection(transport)
    request = f"GET /api/peers HTTP/1.1\r\nAuthorization: {authorization}\r\n\r\n"
    protocol.dataReceived(request.encode())


class ApiTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.agent = RequestTraversalAgent(demo_api())
        self.client = HTTPClient(self.agent)

    def ask(
        self,
        path: str,
        authorization: str | None = f"Bearer {TOKEN}",
        method: str = "GET",
    ) -> tuple[IResponse, bytes]:
        headers = Headers()
        if authorization is not None:
            headers.addRawHeader("Authorization", authorization)
        asked = self.client.request(method, f"http://demo{path}", headers=headers)
        self.agent.flush()
        response = self.successResultOf(asked)
        content = response.content()
        self.agent.flush()
        return response.original, self.successResultOf(content)

    def header(self, response: IResponse, name: str) -> str | None:
        values = response.headers.getRawHeaders(name)
        return values[0] if values else None

    def assertRefused(  # noqa: N802 - as trial's own
        self, status: int, message: str, answer: tuple[IResponse, bytes]
    ) -> None:
        response, body = answer
        self.assertEqual(status, response.code)
        self.assertEqual(f'{{"message":"{message}","code":{status}}}\n', body.decode())
        self.assertEqual(
            "application/json; charset=UTF-8", self.header(response, "Content-Type")
        )
        self.assertIsNotNone(self.header(response, "X-Request-Id"))

    def test_answer(self) -> None:
        """The token is accepted with any spelling of the scheme."""
        expected = b"".join(NETWORK.body("/api/routes", NOW) or ())
        for scheme in ("Bearer", "bearer", "Token", "TOKEN"):
            response, body = self.ask("/api/routes", f"{scheme} {TOKEN}")
            self.assertEqual((200, expected), (response.code, body))
            self.assertEqual(
                "application/json; charset=UTF-8", self.header(response, "Content-Type")
            )
            self.assertIsNotNone(self.header(response, "X-Request-Id"))
            self.assertEqual(len(expected), response.length)

    def test_lengths(self) -> None:
        """Each body is complete; one of more than 2 KB is chunked."""
        lengths = []
        for path in PATHS:
            response, body = self.ask(path)
            self.assertEqual(b"".join(NETWORK.body(path, NOW) or ()), body, path)
            known = UNKNOWN_LENGTH if len(body) > 2048 else len(body)
            self.assertEqual(known, response.length, path)
            lengths.append(len(body))
        self.assertTrue(any(2048 < length < 20_000 for length in lengths))

    def test_no_authentication(self) -> None:
        """A request without a known scheme is refused."""
        for authorization in (None, "", f"Basic {TOKEN}", TOKEN):
            self.assertRefused(
                401,
                "no valid authentication provided",
                self.ask("/api/peers", authorization),
            )

    def test_invalid_token(self) -> None:
        """A malformed token, or one after two spaces, is invalid."""
        for authorization in ("Bearer", "Bearer nbp_short", f"Bearer {TOKEN} x"):
            self.assertRefused(
                401, "token invalid", self.ask("/api/peers", authorization)
            )
        transport = StringTransport()
        send(transport, f"Bearer  {TOKEN}")  # two spaces
        self.assertIn(b"token invalid", transport.value())

    def test_deleted_token(self) -> None:
        """An unknown well-formed token is 404 with a JSON body."""
        response, body = self.ask("/api/peers", "Bearer nbp_" + "z" * 36)
        self.assertEqual(404, response.code)
        message = json.loads(body)["message"]
        self.assertTrue(message.startswith("invalid token: pat: "), message)
        self.assertEqual(message.lower(), message)

    def test_unknown_path(self) -> None:
        """An unknown path is 404 in plain text, also without a token."""
        paths = ("/", "/api", "/api/health", "/api/peers/", "/peers", "/api/users/1")
        for path in paths:
            for authorization in (None, f"Bearer {TOKEN}"):
                response, body = self.ask(path, authorization)
                self.assertEqual((404, b"404 page not found\n"), (response.code, body))
                self.assertEqual(
                    "text/plain; charset=utf-8", self.header(response, "Content-Type")
                )
                self.assertIsNone(self.header(response, "X-Request-Id"))

    def test_wrong_method(self) -> None:
        """Other methods than GET are 404."""
        for method, expected in (("HEAD", b""), ("POST", b"404 page not found\n")):
            response, body = self.ask("/api/peers", method=method)
            self.assertEqual((404, expected), (response.code, body))

    def test_access_tokens(self) -> None:
        """The exporter may read only its own access tokens."""
        response, body = self.ask(f"/api/users/{EXPORTER_ID}/tokens")
        self.assertEqual((200, 3), (response.code, len(json.loads(body))))
        for path, message in (
            (
                "/api/users/google-oauth2%7C1000/tokens",
                "admin role required to perform this action",
            ),
            ("/api/users/current", "permission denied"),
        ):
            self.assertRefused(403, message, self.ask(path))

    def test_access_log(self) -> None:
        """The access log has requests of the account's services."""
        services = b"".join(NETWORK.body("/api/reverse-proxies/services", NOW) or ())
        _, body = self.ask("/api/events/proxy?page_size=100")
        found = {row["service_id"] for row in json.loads(body)["data"]}
        self.assertEqual({one["id"] for one in json.loads(services)[:3]}, found)


class FullTransport(StringTransport):
    """A transport that is full after each write, and calls a function then."""

    producer: IPushProducer

    def __init__(self, when_full: Callable[[IPushProducer], None]) -> None:
        super().__init__()
        self._when_full = when_full

    def write(self, data: bytes) -> None:
        super().write(data)
        self._when_full(self.producer)

    def writeSequence(self, data: list[bytes]) -> None:
        self.write(b"".join(data))


class SlowClientTests(SynchronousTestCase):
    def test_pause(self) -> None:
        """A slow client gets the whole body, made as it reads."""
        transport = FullTransport(lambda producer: producer.pauseProducing())
        send(transport, f"Bearer {TOKEN}")
        sizes = []
        while not transport.value().endswith(b"0\r\n\r\n"):
            sizes.append(len(transport.value()))
            transport.producer.resumeProducing()
        self.assertGreater(len(sizes), 3)
        self.assertEqual(sorted(set(sizes)), sizes)

    def test_disconnect(self) -> None:
        """No more of the body is made after the client disconnects."""
        transport = FullTransport(lambda producer: producer.stopProducing())
        send(transport, f"Bearer {TOKEN}")
        whole = sum(map(len, NETWORK.body("/api/peers", NOW) or ()))
        self.assertLess(len(transport.value()), whole / 2)

"""The failure table: every way in which an upstream fails, through real sockets.

Each row: the reason that is counted, the lines that are logged, the metrics of others
that stay, and the recovery.
"""

import gzip
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client import CollectorRegistry
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import (
    SSL4ServerEndpoint,
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
)
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import PrivateCertificate
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http import datetimeToString
from twisted.web.iweb import IAgent
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from api_exporter.demo.api import DemoApi
from api_exporter.ports import ResponseBody
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.settings.token import Token
from api_exporter.upstream.fetcher import Fetcher, FetchOptions
from api_exporter.world import World
from simulation.company.network import SimulatedNetwork
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE, free_port
from tests.logbook import Logbook, logbook
from tests.parts import quota
from tests.scripted import Answer, says, silence, stall

SECRET = "nbp_0canary0canary0canary0canary0can0000"
NOON = 1_800_014_400.0
DEADLINE = 2.0
"""Seconds before a request without an answer fails."""


class FaultyApi(Resource):
    """The simulated API, with faults on chosen paths."""

    isLeaf = True

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._api = DemoApi({SECRET: SimulatedNetwork(20)}, now=now)
        self._now = now
        self.faults: dict[str, Answer] = {}
        self.authorized: list[str | None] = []

    def render(self, request: Request) -> bytes | int:
        self.authorized.append(request.getHeader("authorization"))
        request.setHeader("Date", datetimeToString(self._now()))
        fault = self.faults.get(request.path.decode())
        if fault is not None:
            return fault(request)
        answer: bytes | int = self._api.render(request)
        return answer


def reset(request: Request) -> int:
    """Half an answer, then a broken connection."""
    request.setHeader(b"Content-Length", b"1000")
    request.setHeader(b"Content-Type", b"application/json")
    request.write(b"[{")
    request.channel.forceAbortClient()
    return NOT_DONE_YET


class Closing(Protocol):
    """Answers every request in the oldest way, without a length."""

    def dataReceived(self, _data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(
            b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[]"
        )
        self.transport.loseConnection()


def self_signed(host: str) -> PrivateCertificate:
    """Return a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both = certificate.public_bytes(pem) + secret
    loaded: PrivateCertificate = PrivateCertificate.loadPEM(both)
    return loaded


NO_SUCH_PATH = says(404, b"404 page not found\n", "text/plain")


class FailureTests(TestCase):
    timeout = 2 * PATIENCE

    def setUp(self) -> None:
        self.clock = Clock()
        self.deadline = PATIENCE
        self.api = FaultyApi(self.now)
        self.book: Logbook = logbook(self)
        self.pool = HTTPConnectionPool(reactor)
        self.pool.retryAutomatically = False
        self.addCleanup(self.pool.closeCachedConnections)

    def now(self) -> float:
        return NOON + self.clock.seconds()

    async def start(
        self, url: str | None = None, longest_body: int = 10_000_000
    ) -> None:
        """Run the first refreshes of peers, groups and setup keys."""
        agent, url = self.proxy_selection(url)
        network = AccountNetwork(
            fetch=self.fetch,
            quota=quota(("peers", "groups", "setup_keys")),
            world=World(self.clock, self.now, lambda: 0.5),
            registry=CollectorRegistry(),
            options=NetworkOptions(metrics_max_age=1200),
        )
        self.network, self.registry = network, network.telemetry.registry
        self.running_requests = 0
        self.upstream = Fetcher(
            agent=agent,
            token=lambda: Token(SECRET),
            on_attempt=network.telemetry.count_attempt,
            options=FetchOptions(
                url=url, timeout=self.deadline, attempts=2, longest_body=longest_body
            ),
            world=World(reactor, self.now, lambda: 0.0),
        )
        network.startService()
        self.addCleanup(network.stopService)
        await self.settle()

    def proxy_selection(self, url: str | None) -> tuple[IAgent, str]:
        """An agent, and an upstream's address; one is served where none is given."""
        if url is None:
            url = f"http://127.0.0.1:{listening(self, Site(self.api))}"
        return Agent(reactor, pool=self.pool), url

    def fetch(self, path: str, patience: float) -> Deferred[ResponseBody]:
        self.running_requests += 1
        return self.upstream.fetch(path, patience).addBoth(self.fetched)

    def fetched(self, result: ResponseBody) -> ResponseBody:
        self.running_requests -= 1
        return result

    async def settle(self) -> None:
        """Let everything happen that is under way; our own time stands still."""
        for _ in range(20_000):
            self.clock.advance(0)
            due = [
                c for c in self.clock.getDelayedCalls() if c.getTime() <= self.time()
            ]
            if not due and not self.running_requests:
                return
            await deferLater(reactor, 0.001)
        self.fail(f"never quiet: {self.book.lines()}")

    def time(self) -> float:
        return self.clock.seconds()

    async def elapse(self, seconds: int) -> None:
        """Let our own time pass, second by second, with all that happens in it."""
        for _ in range(seconds):
            self.clock.advance(1)
            await self.settle()

    @property
    def page(self) -> str:
        return self.network.text().decode()

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def refreshes(self, name: str) -> float:
        return self.value("api_exporter_refreshes_total", resource=name) or 0.0

    def up(self) -> dict[str, float | None]:
        up = "api_exporter_resource_up"
        names = ("peers", "accounts", "groups", "setup_keys")
        return {name: self.value(up, resource=name) for name in names}

    async def assert_row(self, fault: Answer, reason: str, why: str) -> None:
        """A fault of the groups alone: counted, logged once, kept apart, recovered."""
        before = self.page.partition("# HELP netbird_api_group_info")[2]
        self.api.faults["/api/groups"] = fault
        await self.elapse(301)
        self.assertEqual(
            {"peers": 1, "accounts": 1, "groups": 0, "setup_keys": 1}, self.up()
        )
        reasons = "api_exporter_refresh_failure_reasons_total"
        self.assertEqual(1, self.value(reasons, reason=reason), self.book.lines())
        failures = "api_exporter_refresh_failures_total"
        self.assertEqual(1, self.value(failures, resource="groups"))
        self.assertEqual(1, self.value("netbird_api_up"))
        self.assertIn(before.partition("\n")[0], self.page)
        await self.elapse(301)
        [line] = self.book.lines()
        self.assertIn(f"warning cannot refresh groups: {why}", line)
        self.assertTrue(line.endswith(f"reason={reason}"), line)
        del self.api.faults["/api/groups"]
        await self.elapse(301)
        self.assertEqual(1, self.up()["groups"])
        self.assertEqual(2, len(self.book.lines()), self.book.lines())
        self.assertIn("info groups can be refreshed again", self.book.lines()[1])
        self.assertNotIn(SECRET, "".join(self.book.lines()) + self.page)

    async def test_refusals(self) -> None:
        """Each error status of the upstream is reported, and ends with the fault."""
        unknown_token = b'{"message":"invalid token: pat: aGFzaA== not found"}'
        html = b"<html>502 Bad Gateway</html>"
        for fault, reason, why in (
            (says(401, b'{"message":"token invalid"}'), "auth", "401: the NetBird API"),
            (
                says(404, unknown_token),
                "auth",
                "404: the NetBird API rejects the token",
            ),
            (
                says(403, b'{"message":"permission denied"}'),
                "forbidden",
                "403: permission denied",
            ),
            (says(404, b'{"message":"not found"}'), "not_found", "404: not found"),
            (says(418), "http_4xx", "418"),
            (says(500, b'{"message":"oops"}'), "http_5xx", "500: oops"),
            (says(502, html, "text/html"), "http_5xx", "502"),
        ):
            await self.restarted()
            await self.assert_row(fault, reason, why)

    async def test_unusable_bodies(self) -> None:
        """An unexpected complete answer has another error than a broken one."""
        for fault, reason, why in (
            (says(200, b"<html></html>", "text/html"), "decode", "a web page"),
            (says(200, b'[{"id":"a"'), "decode", "Input data was truncated"),
            (says(200, b'{"a":1}'), "decode", "Expected `array | null`, got `object`"),
            (says(200, b"[1,2]"), "decode", "no record can be read: [0]: Expected"),
            (
                says(200, b"no gzip", content_encoding="gzip"),
                "decode",
                "the gzip body is",
            ),
            (
                says(200, gzip.compress(b"[]" * 9)[:-9], content_encoding="gzip"),
                "decode",
                "the gzip body is incomplete",
            ),
            (
                says(200, gzip.compress(b"[]")[:10] + b"xxxx", content_encoding="gzip"),
                "decode",
                "the gzip body is",
            ),
            (says(200, b" " * 10_000_001), "too_large", "the body is longer than"),
            (stall, "timeout", "no response within 2 s"),
            (silence, "timeout", "no response within 2 s"),
            (reset, "connect", "the connection was lost"),
        ):
            self.deadline = DEADLINE if reason == "timeout" else PATIENCE
            await self.restarted()
            await self.assert_row(fault, reason, why)

    async def restarted(self) -> None:
        """A new exporter with a new logbook."""
        self.clock = Clock()
        self.book = logbook(self)
        await self.start()
        self.assertEqual([], self.book.lines())

    async def test_unknown_path(self) -> None:
        """A plain 404 is an upstream that does not have it: no failure."""
        self.api.faults["/api/groups"] = NO_SUCH_PATH
        await self.start()
        supported = "api_exporter_resource_supported"
        self.assertEqual(0, self.value(supported, resource="groups"))
        self.assertIsNone(self.up()["groups"])
        failures = "api_exporter_refresh_failures_total"
        self.assertEqual(0, self.value(failures, resource="groups"))
        self.assertEqual(
            ["info the NetBird API does not have groups"], self.book.lines()
        )
        del self.api.faults["/api/groups"]
        await self.elapse(3661)
        self.assertEqual(1, self.up()["groups"])

    async def test_path_that_was_there(self) -> None:
        """A plain 404 where there was an answer just now is a failure like others."""
        await self.start()
        await self.assert_row(
            NO_SUCH_PATH, "not_found", "404: the NetBird API does not"
        )

    async def test_rate_limited(self) -> None:
        """A 429 is one pause for everything: 15 s, or what the upstream asks for."""
        for fault, pause in (
            (says(429, b'{"message":"too many requests"}'), 15),
            (says(429, retry_after="90"), 90),
        ):
            await self.restarted()
            await self.elapse(290)
            self.api.faults["/api/groups"] = fault
            while self.up()["groups"]:
                await self.elapse(1)
            asked = len(self.api.authorized)
            del self.api.faults["/api/groups"]
            await self.elapse(pause - 1)
            self.assertEqual(asked, len(self.api.authorized))
            await self.elapse(2)
            self.assertLess(asked, len(self.api.authorized))
            await self.elapse(240)  # with a tight budget
            self.assertEqual(1, self.up()["groups"])
            self.assertIn("netbird_api_peer_connected", self.page)
            reasons = "api_exporter_refresh_failure_reasons_total"
            self.assertEqual(1, self.value(reasons, reason="rate_limited"))

    async def test_one_bad_record(self) -> None:
        """A bad record among good ones is left out, counted and named."""
        await self.start()
        body = b'[{"id":"g1"},{"id":"g2","peers":"none"},{"id":"g3"}]'
        self.api.faults["/api/groups"] = says(200, body)
        await self.elapse(301)
        self.assertEqual(1, self.up()["groups"])
        rejected = "api_exporter_resource_rejected_records"
        self.assertEqual(1, self.value(rejected, resource="groups"))
        [line] = self.book.lines()
        self.assertIn("warning a record is left out: groups[1]: Expected", line)
        self.assertIn('netbird_api_group_peers{group_id="g3",group=""} 0', self.page)

    async def test_redirect(self) -> None:
        """A redirect is not followed, and the token is not sent to where it leads."""
        elsewhere = FaultyApi(self.now)
        port = listening(self, Site(elsewhere))
        await self.start()
        address = f"http://127.0.0.1:{port}/api/groups"
        await self.assert_row(
            says(302, location=address), "redirect", "302: the NetBird API redirects"
        )
        self.assertEqual([], elsewhere.authorized)

    async def assert_unreachable(
        self, url: str, reason: str, why: str, *, attempts: int
    ) -> None:
        """A fault of the whole upstream: one other resource is requested as a probe.

        With an interval of five seconds for the peers, there is one attempt.
        """
        await self.start(url)
        self.assertEqual(0, self.value("netbird_api_up"))
        reasons = "api_exporter_refresh_failure_reasons_total"
        self.assertEqual(2, self.value(reasons, reason=reason), self.book.lines())
        requests = "api_exporter_upstream_requests_total"
        self.assertEqual(attempts, self.value(requests, code="none"))
        for line in self.book.lines():
            self.assertIn(why, line)
            self.assertNotIn(SECRET, line)
        self.assertEqual(1, len(self.book.lines()))

    async def test_ipv6(self) -> None:
        """An upstream may be an IPv6 address."""
        endpoint = TCP6ServerEndpoint(reactor, 0, interface="::1")
        await self.start(f"http://[::1]:{listening(self, Site(self.api), endpoint)}")
        self.assertEqual(1, self.value("netbird_api_up"), self.book.lines())

    async def test_old_protocol(self) -> None:
        """A body that ends where the server closes, as in HTTP/1.0, is a whole one."""
        server = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = listening(self, Factory.forProtocol(Closing), server)
        await self.start(f"http://127.0.0.1:{port}")
        self.assertEqual(1, self.value("netbird_api_up"), self.book.lines())

    async def test_refused(self) -> None:
        """No server listens."""
        url = f"http://127.0.0.1:{free_port()}"
        await self.assert_unreachable(url, "connect", "no connection", attempts=3)

    async def test_no_such_name(self) -> None:
        """The name cannot be resolved."""
        await self.assert_unreachable(
            "http://no-such-host.invalid",
            "dns",
            "the host name cannot be resolved",
            attempts=3,
        )

    async def test_untrusted(self) -> None:
        """A certificate of an unknown authority is not trusted."""
        port = self.secured()
        await self.assert_unreachable(
            f"https://localhost:{port}", "tls", "certificate verify failed", attempts=4
        )

    async def test_wrong_name(self) -> None:
        """A trusted certificate for another name is not trusted either."""
        port = self.secured("elsewhere.example", trusted=True)
        await self.assert_unreachable(
            f"https://localhost:{port}",
            "tls",
            "no trusted TLS connection",
            attempts=4,
        )

    async def test_private_authority(self) -> None:
        """SSL_CERT_FILE names the authority of a private upstream."""
        port = self.secured(trusted=True)
        await self.start(f"https://localhost:{port}")
        self.assertEqual(1, self.value("netbird_api_up"), self.book.lines())

    def secured(self, name: str = "localhost", *, trusted: bool = False) -> int:
        """Serve the API over TLS with a certificate for a name."""
        certificate = self_signed(name)
        if trusted:
            path = self.mktemp()
            with open(path, "wb") as file:
                file.write(certificate.dumpPEM())
            os.environ["SSL_CERT_FILE"] = path
            self.addCleanup(os.environ.pop, "SSL_CERT_FILE")
        endpoint = SSL4ServerEndpoint(
            reactor, 0, certificate.options(), interface="127.0.0.1"
        )
        return listening(self, Site(self.api), endpoint)

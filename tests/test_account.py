"""An account from its start to its end, with a fake reactor."""

from base64 import b64encode

from prometheus_client import CollectorRegistry
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.account import MAX_CLOSE_SECONDS, Account, SharedState
from api_exporter.refresh.pipeline import Log
from api_exporter.settings import environment
from api_exporter.upstream.tls_policy import UpstreamCertificate
from tests.logbook import logbook
from tests.memory_reactor import MemoryReactorClock
from tests.refresh.recorded_log import RecordedLog

URL = "http://10.0.0.1"


class Endless(Service):
    """A service that never stops."""

    def stopService(self) -> Deferred[None]:
        super().stopService()
        return Deferred()


class EndlessLog(Endless, RecordedLog):
    """A log that is being written."""


class AccountTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()

    def account(
        self, log: Log | None = None, start_delay: float = 0.0, **settings: str
    ) -> Account:
        self.registry = CollectorRegistry()
        environ = {"UPSTREAM_API_URL": URL, **settings}
        if "UPSTREAM_API_TOKEN_FILE" not in environ:
            environ["UPSTREAM_API_TOKEN"] = "secret"
        (checked,) = environment.read_settings(environ).accounts.values()
        self.shared = SharedState([checked])
        return Account(
            checked,
            self.reactor,  # type: ignore[arg-type]
            shared=self.shared,
            registry=self.registry,
            now=self.reactor.seconds,
            jitter=lambda: 0.5,
            start_delay=start_delay,
            logs={} if log is None else {"events": log},
        )

    def started(self, account: Account) -> Account:
        account.startService()
        self.reactor.advance(0)
        self.addCleanup(self.stop, account)
        return account

    def stop(self, account: Account) -> None:
        account.stopService()
        self.reactor.advance(MAX_CLOSE_SECONDS)

    def test_start(self) -> None:
        """An account sends requests at once, or after the time in `after`."""
        self.started(self.account())
        self.assertNotEqual([], self.reactor.tcpClients)
        self.reactor.tcpClients.clear()
        self.started(self.account(start_delay=2.0))
        self.reactor.advance(1.5)
        self.assertEqual([], self.reactor.tcpClients)
        self.reactor.advance(0.5)
        self.assertNotEqual([], self.reactor.tcpClients)

    def test_timeout(self) -> None:
        """An attempt to connect ends after HTTP_TIMEOUT."""
        self.started(self.account(HTTP_TIMEOUT="7s"))
        [(_, _, _, seconds, _), *_] = self.reactor.tcpClients
        self.assertEqual(7.0, seconds)

    def connected(self) -> tuple[IProtocol, StringTransport]:
        """Establish and return the first connection."""
        [(_, _, factory, _, _), *_] = self.reactor.tcpClients
        transport = StringTransport()
        connection = factory.buildProtocol(None)
        assert connection is not None
        connection.makeConnection(transport)
        return connection, transport

    def test_proxy(self) -> None:
        """A proxy that reads the token, repeats its login or hangs is logged."""
        login = b64encode(b"me:c4n@ry-of-mine").decode()
        echo = b'{"message":"who is %b?","code":418}' % login.encode()
        head = b"HTTP/1.1 418 No\r\nContent-Length: %d\r\n\r\n" % len(echo)
        plain = "the proxy 10.0.0.2:3128 can read the token: UPSTREAM_API_URL is not"
        hangs = "the proxy 10.0.0.2:3128 did not answer CONNECT within 1 s"
        via = "http://me:c4n%40ry-of-mine@10.0.0.2:3128"
        away = "cannot reach the NetBird API"
        refused = "cannot refresh peers: 418: who is <token>?"
        late = f"cannot refresh peers: {hangs} reason=proxy"
        for url, answer, lines in (
            (URL, head + echo, [plain, refused, away]),
            ("https://10.0.0.1", b"", [late, away]),
        ):
            self.setUp()
            book = logbook(self)
            account = self.account(
                UPSTREAM_API_URL=url, UPSTREAM_PROXY=via, HTTP_TIMEOUT="1s"
            )
            account.startService()
            self.reactor.advance(0)
            protocol, _ = self.connected()
            protocol.dataReceived(answer)
            self.reactor.pump([0.0, 1.0])
            self.stop(account)
            for words, line in zip(lines, book.lines(), strict=True):
                self.assertIn(words, line)

    def test_attempts(self) -> None:
        """An account's network counts requests, and the server's refused paths."""
        account = self.started(self.account())
        self.assertIs(self.shared.refused_paths(URL), account.network.refused_paths)
        name, labels = "api_exporter_upstream_requests_total", {"code": "none"}
        self.assertIsNone(self.registry.get_sample_value(name, labels))
        self.reactor.advance(60)
        self.assertLess(0, self.registry.get_sample_value(name, labels) or 0)

    def test_certificates(self) -> None:
        """A known certificate has its metric, an unknown one has none."""
        account = self.account()
        for known, ends in (
            (None, [None, None]),
            (UpstreamCertificate("CN=x", 0.5, 1.5), [1.5, None]),
        ):
            account.client.server_certificate = known
            found = [
                self.registry.get_sample_value(
                    f"api_exporter_{side}_certificate_expiration_timestamp_seconds"
                )
                for side in ("upstream", "client")
            ]
            self.assertEqual(ends, found)

    def test_stop(self) -> None:
        """A stop waits half a second for NetBird, and five for a log."""
        waiting = self.account()
        waiting.network.addService(Endless())
        writing = self.account(EndlessLog())
        for seconds, account in ((0.5, waiting), (5.0, writing)):
            account.startService()
            stopped = account.stopService()
            self.reactor.advance(seconds / 2)
            self.assertNoResult(stopped)
            self.reactor.advance(seconds / 2)
            self.successResultOf(stopped)
            self.assertEqual([], self.reactor.getDelayedCalls())
        self.successResultOf(self.account().stopService())
        self.assertEqual([], self.reactor.getDelayedCalls())

"""The settings and the server of the simulation."""

from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo import server
from api_exporter.settings.environment import read_settings
from tests.memory_reactor import MemoryReactorClock


class EnvironTests(SynchronousTestCase):
    def test_events(self) -> None:
        """Simulated audit events are not written to the configured file."""
        listening, other = server.bind(), server.bind()  # each has a port of its own
        self.addCleanup(listening.close)
        self.addCleanup(other.close)
        for output in ("/var/log/e.jsonl", "-"):
            wanted = {"EVENTS_FILE": output, "EVENTS_CURSOR_FILE": "/var/lib/e"}
            for others in ({}, {"DEMO_ACCOUNTS": "3"}):
                environ = wanted | others | server.demo_environment(listening)
                accounts = server.with_demo_accounts(read_settings(environ)).accounts
                for name, account in accounts.items():
                    self.assertEqual((name, None), (account.name, account.events_file))

    def test_environment(self) -> None:
        """The demo uses no proxy, and counts the requests of the access log."""
        listening = server.bind()
        self.addCleanup(listening.close)
        found = server.demo_environment(listening)
        used = {name for name, value in found.items() if value}
        self.assertEqual(
            {"UPSTREAM_API_TOKEN", "UPSTREAM_API_URL"},
            used - {"UPSTREAM_PROXY", "ACCESS_LOG_METRICS"},
        )
        self.assertEqual("none", found["UPSTREAM_PROXY"])
        self.assertEqual("true", found["ACCESS_LOG_METRICS"])


class ServerTests(SynchronousTestCase):
    def test_quiet(self) -> None:
        """Simulated accounts are served without a line in the log."""
        reactor, listening = MemoryReactorClock(), server.bind()
        self.addCleanup(listening.close)
        many = {"DEMO_ACCOUNTS": "3", "DEMO_PEERS": "20"}
        settings = read_settings(many | server.demo_environment(listening))
        service = server.server(
            listening, settings=settings, reactor=reactor, now=float
        )
        service.startService()
        [(_, _, site)] = reactor.adoptedPorts
        with capturedLogs() as logged:
            site.doStart()
            transport, protocol = StringTransport(), site.buildProtocol(None)
            protocol.makeConnection(transport)
            token = server.tokens(3)["customer-001"]
            head = f"GET /api/peers HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n"
            protocol.dataReceived(head.encode())
        self.assertEqual(16, transport.value().count(b'"dns_label":'))
        self.assertEqual([], list(logged))

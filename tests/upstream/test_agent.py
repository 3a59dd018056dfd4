"""Connections of the agent, with a reactor in memory."""

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IProtocol
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.proxy import Proxy, proxy
from api_exporter.upstream.agent import IDLE_SECONDS, RENEWAL_SECONDS, UpstreamAgent
from api_exporter.upstream.connection import CLOSE_TIMEOUT
from api_exporter.upstream.failures import ProxyTimeout
from api_exporter.upstream.tls_policy import TlsPolicy
from tests.upstream.test_fetcher import NeverResolved

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Connection(StringTransport):
    """A connection whose peer sends and receives at once."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802
        pass


class UpstreamAgentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        self.made: list[tuple[IProtocol, Connection]] = []

    def make_agent(self, via: Proxy | None = None) -> UpstreamAgent:
        return UpstreamAgent(
            self.reactor,  # type: ignore[arg-type]
            proxy=via,
            policy=TlsPolicy(None, None, float),
            proxy_policy=TlsPolicy(None, None, float),
            timeout=5,
            on_certificate=lambda _: None,
        )

    def connected(self) -> tuple[IProtocol, Connection]:
        """Establish and return the newest connection."""
        *_, factory, _, _ = self.reactor.tcpClients[-1]
        protocol, connection = factory.buildProtocol(None), Connection()
        assert protocol is not None
        protocol.makeConnection(connection)
        return protocol, connection

    def send(self, agent: UpstreamAgent, url: bytes = b"http://10.0.0.1/api") -> bytes:
        """Answer a request, and return its bytes."""
        agent.request(b"GET", url)
        if len(self.reactor.tcpClients) > len(self.made):
            self.made.append(self.connected())
        protocol, connection = self.made[-1]
        sent: bytes = connection.value()
        connection.clear()
        protocol.dataReceived(ANSWER)
        return sent

    def test_kept(self) -> None:
        """A connection is reused for an hour at most, however busy it is."""
        agent = self.make_agent()
        for _ in range(int(RENEWAL_SECONDS / 30)):
            self.send(agent)
            self.reactor.advance(30)
        self.assertEqual(1, len(self.made))
        self.reactor.advance(1)
        self.send(agent)
        self.assertEqual(2, len(self.made))
        self.assertEqual([True, False], [made.disconnecting for _, made in self.made])

    def test_goodbye(self) -> None:
        """A connection that the peer does not close is aborted after some seconds."""
        agent = self.make_agent()
        self.send(agent)
        [(protocol, connection)] = self.made
        self.reactor.advance(IDLE_SECONDS)
        self.assertTrue(connection.disconnecting)
        self.assertFalse(connection.disconnected)
        self.reactor.advance(CLOSE_TIMEOUT)
        self.assertTrue(connection.disconnected)
        protocol.connectionLost(Failure(ConnectionDone()))
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_good_end(self) -> None:
        """A connection that the peer closes in time leaves no timer behind."""
        agent = self.make_agent()
        self.send(agent)
        [(protocol, connection)] = self.made
        self.reactor.advance(IDLE_SECONDS)
        protocol.connectionLost(Failure(ConnectionDone()))
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.assertFalse(connection.disconnected)

    def test_direct(self) -> None:
        """Without a proxy, the request goes to the host and has a path."""
        sent = self.send(self.make_agent())
        self.assertTrue(sent.startswith(b"GET /api HTTP/1.1\r\n"))

    def test_whole_address(self) -> None:
        """The proxy gets the whole address and its own credentials."""
        sent = self.send(self.make_agent(proxy("me:secret@10.0.0.2:3128")))
        self.assertEqual(3128, self.reactor.tcpClients[0][1])
        first, *headers = sent.split(b"\r\n")
        self.assertEqual(b"GET http://10.0.0.1/api HTTP/1.1", first)
        self.assertIn(b"Proxy-Authorization: Basic bWU6c2VjcmV0", headers)
        self.assertIn(b"Host: 10.0.0.1", headers)
        sent = self.send(self.make_agent(proxy("10.0.0.2:3128")))
        self.assertNotIn(b"Proxy-Authorization", sent)

    def test_tunnel(self) -> None:
        """An https request goes through a tunnel, with TLS inside."""
        agent = self.make_agent(proxy("10.0.0.2:3128"))
        agent.request(b"GET", b"https://10.0.0.1/api")
        protocol, connection = self.connected()
        self.assertTrue(connection.value().startswith(b"CONNECT 10.0.0.1:443 HTTP/1.1"))
        connection.clear()
        protocol.dataReceived(b"HTTP/1.1 200 Fine\r\n\r\n")
        self.assertTrue(connection.value().startswith(b"\x16\x03"), "no hello of TLS")

    def test_held_up(self) -> None:
        """Cancelling before the proxy is connected raises an error with its name."""
        for resolved in (True, False):
            if not resolved:
                self.reactor.installNameResolver(NeverResolved())
            for url in (b"http://10.0.0.1/api", b"https://10.0.0.1/api"):
                agent = self.make_agent(proxy("proxy.example:3128"))
                asking = agent.request(b"GET", url)
                asking.cancel()
                held_up = self.failureResultOf(asking, ProxyTimeout)
                self.assertEqual(
                    "no connection to the proxy proxy.example:3128", str(held_up.value)
                )

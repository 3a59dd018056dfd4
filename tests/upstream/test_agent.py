"""Connections of the agent, with a reactor in memory."""

from twisted.internet import error
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IProtocol
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import UpstreamError
from api_exporter.settings.proxy import Proxy, proxy
from api_exporter.settings.token import Token
from api_exporter.upstream.agent import IDLE_SECONDS, RENEWAL_SECONDS, UpstreamAgent
from api_exporter.upstream.failures import ProxyTimeout, raise_upstream_error
from api_exporter.upstream.fetcher import Fetcher
from api_exporter.upstream.tls_policy import TlsPolicy
from tests.memory_reactor import MemoryReactorClock, Resolver
from tests.parts import account_settings, clocks_of
from tests.upstream.test_fetcher import NeverResolved

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Connection(StringTransport):
    """A connection whose peer sends and receives at once.

    Args:
        prompt: the answer to CONNECT, if the peer sends it before all else.
    """

    def __init__(self, protocol: IProtocol, prompt: bytes) -> None:
        super().__init__()
        self._client = protocol
        self._prompt = prompt

    def write(self, data: bytes) -> None:
        super().write(data)
        if self._prompt and data.startswith(b"CONNECT"):
            self._client.dataReceived(b"HTTP/1.1 %b\r\n\r\n" % self._prompt)

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802
        pass


class UpstreamAgentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        self.reactor.advance(5000.0)
        self.made: list[tuple[IProtocol, Connection]] = []

    def make_agent(self, via: Proxy | None = None) -> UpstreamAgent:
        return UpstreamAgent(
            self.reactor,  # type: ignore[arg-type]
            proxy=via,
            policy=TlsPolicy(None, None, float),
            timeout=5,
            on_certificate=lambda _: None,
        )

    def connected(self, prompt: bytes = b"") -> tuple[IProtocol, Connection]:
        """Establish and return the newest connection."""
        *_, factory, _, _ = self.reactor.tcpClients[-1]
        protocol = factory.buildProtocol(None)
        assert protocol is not None
        connection = Connection(protocol, prompt)
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
        self.assertEqual([True, False], [made.disconnected for _, made in self.made])

    def test_goodbye(self) -> None:
        """An idle connection is aborted: no peer can hold it open."""
        self.send(self.make_agent())
        protocol, connection = self.made.pop()
        self.reactor.advance(IDLE_SECONDS)
        self.assertTrue(connection.disconnected)
        protocol.connectionLost(Failure(ConnectionDone()))
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_whole_address(self) -> None:
        """The proxy gets the whole address and its own credentials, others the path."""
        sent = self.send(self.make_agent())
        self.assertTrue(sent.startswith(b"GET /api HTTP/1.1\r\n"))
        sent = self.send(self.make_agent(proxy("me:secret@10.0.0.2:3128")))
        self.assertEqual(3128, self.reactor.tcpClients[-1][1])
        first, *headers = sent.split(b"\r\n")
        self.assertEqual(b"GET http://10.0.0.1/api HTTP/1.1", first)
        self.assertIn(b"Proxy-Authorization: Basic bWU6c2VjcmV0", headers)
        self.assertIn(b"Host: 10.0.0.1", headers)
        sent = self.send(self.make_agent(proxy("10.0.0.2:3128")))
        self.assertNotIn(b"Proxy-Authorization", sent)

    def test_no_tunnel(self) -> None:
        """If the proxy opens no tunnel, the request fails with the proxy's name."""

        def lose(protocol: IProtocol, _connection: Connection) -> None:
            protocol.connectionLost(Failure(ConnectionDone()))

        def refuse(protocol: IProtocol, connection: Connection) -> None:
            protocol.dataReceived(b"HTTP/1.1 503 No\r\n\r\n")
            self.assertTrue(connection.disconnected)
            protocol.dataReceived(b"HTTP/1.1 200 Late\r\n\r\n")
            protocol.connectionLost(Failure(ConnectionDone()))

        lost = "closed the connection before it answered CONNECT"
        refused = "answers CONNECT with 503: the proxy cannot reach the NetBird API"
        for end, words in (
            (lose, f"the proxy 10.0.0.2:3128 {lost}"),
            (refuse, f"the proxy 10.0.0.2:3128 {refused}"),
        ):
            agent = self.make_agent(proxy("10.0.0.2:3128"))
            requested = agent.request(b"GET", b"https://10.0.0.1/api")
            end(*self.connected())
            error = self.failureResultOf(requested, UpstreamError).value
            self.assertEqual(words, str(error))
            self.assertTrue(error.retryable)

    def test_away(self) -> None:
        """A proxy that cannot be reached is named, and the request was not sent."""
        for why in (error.ConnectionRefusedError(), error.DNSLookupError()):
            for url in (b"http://10.0.0.1/api", b"https://10.0.0.1/api"):
                agent = self.make_agent(proxy("10.0.0.2:3128"))
                requested = agent.request(b"GET", url)
                *_, factory, _, _ = self.reactor.tcpClients[-1]
                connector = self.reactor.connectors[-1]
                factory.clientConnectionFailed(connector, Failure(why))
                self.reactor.advance(1)
                failure = self.failureResultOf(requested)
                raised = self.assertRaises(UpstreamError, raise_upstream_error, failure)
                self.assertIn("no connection to the proxy 10.0.0.2:3128: ", str(raised))
                self.assertEqual("proxy", raised.reason)
                self.assertTrue(raised.retryable and raised.unsent)

    def test_prompt_answer(self) -> None:
        """The proxy may answer before the agent waits for it."""
        for answer in (b"200 Fine", b"403 No"):
            agent = self.make_agent(proxy("10.0.0.2:3128"))
            requested = agent.request(b"GET", b"https://10.0.0.1/api")
            _, connection = self.connected(answer)
            is_open = b"\x16\x03" in connection.value()  # a hello of TLS
            self.assertEqual(answer == b"200 Fine", is_open)
            if not is_open:
                self.failureResultOf(requested, UpstreamError)

    def test_silent_proxy(self) -> None:
        """Cancelling while the proxy is silent closes its connection."""
        agent = self.make_agent(proxy("10.0.0.2:3128"))
        requested = agent.request(b"GET", b"https://10.0.0.1/api")
        _, connection = self.connected()
        requested.cancel()
        error = self.failureResultOf(requested, ProxyTimeout).value
        self.assertEqual("the proxy 10.0.0.2:3128 did not answer CONNECT", str(error))
        self.assertTrue(connection.disconnected)

    def late(self, agent: UpstreamAgent, url: str) -> UpstreamError:
        """Return the error of a request whose time ends first."""
        fetcher = Fetcher(
            agent=agent,
            token=lambda: Token("nbp_canary"),
            on_attempt=lambda _: None,
            settings=account_settings(upstream_api_url=url, http_timeout=5.0),
            clocks=clocks_of(self.reactor),
        )
        fetched = fetcher.fetch("api/peers", 60.0)
        self.reactor.advance(5.0)
        error = self.failureResultOf(fetched, UpstreamError).value
        assert isinstance(error, UpstreamError)
        return error

    def test_late(self) -> None:
        """A timeout without a connection says so, and the request was not sent."""
        via, http, https = proxy("10.0.0.2:3128"), "http://10.0.0.1", "https://10.0.0.1"
        missing = "no connection in time"
        unproxied = f"no connection to the proxy {via} within 5 s"
        for to_proxy, url, reason, words in (
            (None, http, "timeout", missing),
            (None, https, "timeout", missing),
            (via, http, "proxy", unproxied),
            (via, https, "proxy", unproxied),
        ):
            for resolved in (True, False):
                name_resolver = Resolver() if resolved else NeverResolved()
                self.reactor.installNameResolver(name_resolver)
                error = self.late(self.make_agent(to_proxy), url)
                self.assertEqual((reason, words), (error.reason, str(error)))
                self.assertTrue(error.unsent)

    def test_late_kept(self) -> None:
        """A request over a kept connection was sent."""
        agent = self.make_agent()
        self.send(agent)
        error = self.late(agent, "http://10.0.0.1")
        self.assertEqual("no complete response within 5 s", str(error))
        self.assertFalse(error.unsent)

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

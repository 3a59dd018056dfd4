"""Connections with TLS, and limits to what comes before a body; all in memory."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import twisted.internet.reactor  # noqa: TID251 - to replace it
from cryptography.x509 import DNSName, load_pem_x509_certificate
from OpenSSL.crypto import X509
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol, IProtocolFactory, ITransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.test.iosim import FakeTransport, connect
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import readBody
from twisted.web.http_headers import Headers

from api_exporter.ports import UpstreamError
from api_exporter.settings.proxy import Proxy, proxy
from api_exporter.upstream.advice import advice
from api_exporter.upstream.agent import IDLE_SECONDS, UpstreamAgent
from api_exporter.upstream.connection import MAX_HEADER_BYTES
from api_exporter.upstream.failures import raise_upstream_error
from api_exporter.upstream.tls_policy import TlsPolicy, chain_problem, read_certificate
from tests.authority import Authority
from tests.memory_reactor import MemoryReactorClock

ADDRESS, UNUSUAL = "10.0.0.1", "my_host.example"
PEER = IPv4Address("TCP", ADDRESS, 443)
PLAIN = ""
"""Instead of a certificate's host: a server without TLS."""

Talk = Callable[[ITransport], object]


class Server(Protocol):
    """A server that records what it receives."""

    def __init__(self, talk: Talk, received: list[bytes]) -> None:
        self._talk = talk
        self._received = received

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        self._received.append(data)
        self._talk(self.transport)


class Tunnel(Protocol):
    """A proxy that opens a tunnel to a server, and records what it carries there."""

    def __init__(self, server: IProtocol, carried: list[bytes]) -> None:
        self._server = server
        self._carried = carried
        self._is_open = False

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        self._carried.append(data)
        if self._is_open:
            self._server.dataReceived(data)
            return
        self._is_open = True
        self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._server.makeConnection(self.transport)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._server.connectionLost(reason)


def sends(*pieces: bytes, close: bool = True) -> Talk:
    """Return a server's answer to everything."""

    def talk(transport: ITransport) -> None:
        for piece in pieces:
            transport.write(piece)
        if close:
            transport.loseConnection()

    return talk


def answers_once(end: str) -> Talk:
    """Return a server that answers one request of a connection, and ends it then."""
    used: list[ITransport] = []

    def talk(transport: ITransport) -> None:
        if transport in used:
            getattr(transport, end)()
        else:
            transport.write(GOOD)
        used.append(transport)

    return talk


def endless(line: bytes, head: bytes = b"") -> Talk:
    """Return an answer that repeats a line until it is too long."""
    times = MAX_HEADER_BYTES // len(line) + 1
    return sends(head, *[line] * times, close=False)


GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
TOO_LONG = b"HTTP/1.1 200 OK\r\nA: " + b"x" * 20_000
FIELD = b"A: %b\r\n" % (b"x" * 1000)
ALERT = b"\x15\x03\x01\x00\x02\x02\x46"
TOKEN = "nbp_c4nary"
VIA = proxy("http://me:s3cret@10.0.0.2:3128")
good, closing = sends(GOOD, close=False), sends()


class ConnectionTests(SynchronousTestCase):
    on_server_name: Callable[[bytes], object] | None = None

    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        # Twisted's TLS writes in the next turn of the global reactor.
        self.patch(twisted.internet, "reactor", self.reactor)
        self.authority = Authority("test")
        self.issue = self.authority.issue
        bundle = Path(self.mktemp())
        bundle.write_bytes(self.authority.pem)
        self.policy = TlsPolicy(bundle, None, float)
        self.seen: list[X509] = []
        self.received: list[bytes] = []
        self.carried: list[bytes] = []

    def requested(
        self,
        talk: Talk,
        host: str = ADDRESS,
        certified: str = ADDRESS,
        *,
        scheme: str = "https",
        times: int = 1,
        via: Proxy | None = None,
    ) -> Deferred[bytes]:
        """Return the body of the last request.

        Args:
            certified: the host in the server's certificate.
        """
        agent = UpstreamAgent(
            self.reactor,  # type: ignore[arg-type]
            proxy=via,
            policy=self.policy,
            timeout=5,
            on_certificate=self.seen.append,
        )
        bodies: list[Deferred[bytes]] = []
        for _ in range(times):
            url = f"{scheme}://{host}/api".encode()
            response = agent.request(b"GET", url, Headers({"Authorization": [TOKEN]}))
            bodies.append(response.addCallback(readBody))
            for _ in range(2):  # a new connection may replace one that is closed
                if self.reactor.tcpClients:
                    self.connect(talk, certified, is_tunnel=via is not None)
                self.pump.flush()
        return bodies[-1]

    def connect(self, talk: Talk, certified: str, *, is_tunnel: bool) -> None:
        """Establish the connection to a server."""
        *_, clients, _, _ = self.reactor.tcpClients.pop()
        serve = partial(Server, talk, self.received)
        servers: IProtocolFactory = Factory.forProtocol(serve)
        if certified != PLAIN:
            options = self.issue(certified).server().options()
            context = options.getContext()
            if (on_name := self.on_server_name) is not None:
                context.set_tlsext_servername_callback(
                    lambda connection: on_name(connection.get_servername())
                )
            servers = TLSMemoryBIOFactory(options, False, servers)
        client, server = (made.buildProtocol(PEER) for made in (clients, servers))
        if is_tunnel:
            assert server is not None
            server = Tunnel(server, self.carried)
        self.pump = connect(
            server,
            FakeTransport(server, True),
            client,
            FakeTransport(client, False),
            clock=self.reactor,
        )

    def failed(self, *arguments: Any, **options: Any) -> UpstreamError:
        """Return the error of a request."""
        failure = self.failureResultOf(self.requested(*arguments, **options))
        error = self.assertRaises(UpstreamError, raise_upstream_error, failure)
        assert isinstance(error, UpstreamError)
        return error

    def test_tls(self) -> None:
        """Responses are received; the certificate of a connection is reported once."""
        for host in (ADDRESS, UNUSUAL):
            self.seen.clear()
            body = self.requested(good, host, host, times=2)
            self.assertEqual(b"[]", self.successResultOf(body), host)
            [certificate] = self.seen
            self.assertEqual(host, certificate.get_subject().CN)
            read = read_certificate(certificate)
            self.assertEqual("CN=test", read.issuer)
            end = datetime.fromtimestamp(read.expires_at, UTC)
            self.assertEqual(
                f"{end:%Y%m%d%H%M%SZ}".encode(), certificate.get_notAfter()
            )

    def test_tunnel(self) -> None:
        """The proxy sees no token, and the server no login of the proxy."""
        self.successResultOf(self.requested(good, via=VIA))
        carried, received = b"".join(self.carried), b"".join(self.received)
        self.assertEqual(1, carried.count(b"Proxy-Authorization: Basic "))
        self.assertNotIn(TOKEN.encode(), carried)
        self.assertEqual(1, received.count(TOKEN.encode()))
        self.assertNotIn(b"Proxy-Authorization", received)

    def test_closed_at_reuse(self) -> None:
        """A kept connection or tunnel that ends when it is used again is no failure."""
        for end in ("loseConnection", "abortConnection"):
            for via in (None, VIA):
                self.received.clear()
                body = self.requested(answers_once(end), times=2, via=via)
                self.assertEqual(b"[]", self.successResultOf(body))
                self.assertEqual(3, len(self.received))

    def test_long_body(self) -> None:
        """The limit of the headers is not one of the body."""
        body = b"x" * 2 * MAX_HEADER_BYTES
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)

        def talk(transport: ITransport) -> None:
            transport.write(head)
            self.reactor.callLater(1, transport.write, body)

        for certified, scheme in ((PLAIN, "http"), (ADDRESS, "https")):
            requested = self.requested(talk, certified=certified, scheme=scheme)
            self.reactor.advance(1)
            self.pump.flush()
            self.assertEqual(body, self.successResultOf(requested))

    def test_closed_by_server(self) -> None:
        """A connection that the server closed has no idle time."""
        self.successResultOf(self.requested(sends(GOOD)))
        self.reactor.advance(IDLE_SECONDS)
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_no_names(self) -> None:
        """A trusted certificate whose names are missing or invalid is for no host."""
        for names in ([], [DNSName("*.*.example")], [DNSName(ADDRESS)]):
            self.issue = partial(self.authority.issue, sans=names)
            for host in (ADDRESS, UNUSUAL):
                error = self.failed(good, host, "other.example")
                self.assertEqual(("tls", []), (error.reason, self.seen))

    def test_untrusted(self) -> None:
        """A certificate of an unknown authority is rejected."""
        self.issue = Authority("another").issue
        for host in (ADDRESS, UNUSUAL):
            words = "its issuer CN=another is not trusted"
            self.assertIn(words, str(self.failed(good, host, host)))

    def test_self_signed(self) -> None:
        """A self-signed certificate lacks no intermediate one: it is its own issuer."""
        certificate = load_pem_x509_certificate(Authority("alone").pem)
        problem = chain_problem(certificate, 18)
        assert problem is not None
        self.assertIn("issuer CN=alone is not trusted, as it is self", str(problem))
        self.assertIn("set UPSTREAM_CA_FILE to this", problem.cure)

    def test_certificates(self) -> None:
        """Each fault of a certificate has its own sentence, with its facts and cure."""
        prefix = "no trusted TLS connection: the certificate "
        date = r"20\d\d-\d\d-\d\d \d\d:\d\d UTC"
        names = [DNSName(f"n{number}.example") for number in range(5)]
        for options, words, cure in (
            (
                {"begins": -9, "days": -2},
                f"expired on {date}$",
                "Renew the certificate",
            ),
            ({"begins": 2}, f"is not valid before {date}: check this", "replace"),
            (
                {"sans": names},
                r"is for n0.example, n1.example, n2.example and 2 more, not for \S+$",
                "Write a host",
            ),
            ({"sans": []}, r"is for no host, not for \S+$", "Write a host"),
        ):
            self.issue = partial(self.authority.issue, **options)
            for host in (ADDRESS, UNUSUAL):
                error = self.failed(good, host, host)
                self.assertRegex(str(error), f"^{prefix}{words}")
                self.assertIn(cure, advice(error))
                self.assertNotIn("UPSTREAM_CA_FILE", advice(error))
                self.assertTrue(error.retryable)

    def test_dot(self) -> None:
        """A dot at the end of the host is not part of the name in the certificate."""
        names = list[bytes]()
        self.on_server_name = names.append
        self.successResultOf(self.requested(sends(GOOD), f"{UNUSUAL}.", UNUSUAL))
        self.assertEqual([UNUSUAL.encode()], names)
        self.assertIn(f"Host: {UNUSUAL}.\r\n".encode(), b"".join(self.received))

    def test_http_2(self) -> None:
        """A server that speaks only HTTP/2 is named by its frames, also within TLS."""
        settings = b"\0\0\x12\x04\0\0\0\0\0" + bytes(18)
        goodbye = b"\0\0\x08\x07\0\0\0\0\0" + bytes(8)
        for talk, certified, scheme in (
            (sends(settings), PLAIN, "http"),
            (sends(goodbye), ADDRESS, "https"),
            (sends(settings, close=False), ADDRESS, "https"),
        ):
            error = self.failed(talk, ADDRESS, certified, scheme=scheme)
            self.assertIn("speaks HTTP/2 only on this port", str(error))
            self.assertIn("Enable HTTP/1.1", advice(error))

    def test_failures(self) -> None:
        """Each failure has its reason, with TLS and without."""
        handshake = "the connection closed within the TLS handshake"
        long = f"more than {MAX_HEADER_BYTES} bytes of headers"
        line = "a header of more than 16384 bytes"
        hint = b"HTTP/1.1 103 Early Hints\r\n%b\r\n" % FIELD
        for talk, certified, scheme, reason, words in (
            (closing, PLAIN, "https", "tls", handshake),
            (sends(ALERT), PLAIN, "https", "tls", ""),
            (sends(GOOD), PLAIN, "https", "tls", ""),
            (closing, ADDRESS, "https", "connect", ""),
            (closing, PLAIN, "http", "connect", ""),
            (sends(GOOD[:-1]), ADDRESS, "https", "connect", ""),
            (endless(hint), ADDRESS, "https", "too_large", long),
            (endless(hint), PLAIN, "http", "too_large", long),
            (endless(FIELD, GOOD[:17]), PLAIN, "http", "too_large", long),
            (sends(TOO_LONG, close=False), PLAIN, "http", "too_large", line),
            (sends(TOO_LONG, close=False), ADDRESS, "https", "too_large", line),
            (
                endless(b"HTTP/1.1 100 Continue\r\n\r\n"),
                PLAIN,
                "http",
                "too_large",
                long,
            ),
        ):
            error = self.failed(talk, ADDRESS, certified, scheme=scheme)
            self.assertEqual(reason, error.reason, (talk, scheme))
            self.assertIn(words, str(error))
            self.assertEqual(reason != "too_large", error.retryable)

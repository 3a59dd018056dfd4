"""The limits of one connection, and its responses above them."""

import socket
from typing import Any

from OpenSSL import SSL
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.task import Clock
from twisted.internet.tcp import Port, Server
from twisted.internet.testing import MemoryReactor
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.serving.channel import host_of
from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.site import REQUEST_TIMEOUT, BoundedSite
from tests.authority import Authority
from tests.logbook import logbook
from tests.web.connection import CLIENT, Connection, Waiting, Wire, shake_hands


class Numbered(ReadOnlyPage):
    """A page that counts its requests."""

    made = 0

    def page(self, _request: Request) -> str:
        self.made += 1
        return f"<{self.made}>"


class ChannelTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.page, self.later = Numbered(), Waiting()
        tree = Resource()
        tree.putChild(b"page", self.page)
        tree.putChild(b"later", self.later)
        self.site = BoundedSite(tree, self.clock)

    def connection(self) -> Connection:
        connection = Connection(self.site)
        self.addCleanup(connection.lose)
        return connection


class TurnsTests(ChannelTestCase):
    def pages_made(self, count: int) -> list[int]:
        """Return how often the page had been made at each event loop iteration."""
        seen: list[int] = []

        def count_pages() -> None:
            seen.append(self.page.made)
            if len(seen) < count:
                self.clock.callLater(0, count_pages)

        self.clock.callLater(0, count_pages)
        self.clock.advance(0)
        return seen

    def test_one_at_a_time(self) -> None:
        """Pipelined requests are answered each in its own event loop iteration."""
        one, other = self.connection(), self.connection()
        one.ask("/page", times=100)
        self.assertEqual(1, self.page.made)
        other.ask("/page")
        self.assertIn(b"<2>", other.heard())
        self.assertEqual([*range(3, 102), 101], self.pages_made(100))
        answers = one.heard()
        places = [answers.index(b"<%d>" % n) for n in (1, *range(3, 102))]
        self.assertEqual(sorted(places), places)
        one.ask("/page")
        self.assertIn(b"<102>", one.heard())

    def test_after_a_long_one(self) -> None:
        """Requests behind an unanswered one wait, and are then answered one by one."""
        connection = self.connection()
        connection.ask("/later")
        connection.ask("/page", times=2)
        self.assertEqual([0, 0], self.pages_made(2))
        self.later.finish()
        self.assertEqual((0, [1, 2, 2]), (self.page.made, self.pages_made(3)))
        self.assertRegex(connection.heard(), b"(?s)done.*<1>.*<2>")

    def test_takes_nothing(self) -> None:
        """If a client receives no responses, no more requests are read or answered."""
        connection = self.connection()
        connection.ask("/page", times=3)
        connection.channel.pauseProducing()  # as a full transport does
        for _ in range(3):
            self.clock.advance(0)
        self.assertEqual(1, self.page.made)
        self.assertEqual("paused", connection.transport.producerState)
        connection.channel.resumeProducing()
        for _ in range(3):
            self.clock.advance(0)
        self.assertEqual(3, self.page.made)
        self.assertEqual("producing", connection.transport.producerState)

    def test_sends_only(self) -> None:
        """A client that sends on while it receives no response is read no more."""
        connection = self.connection()
        connection.ask("/later")
        connection.channel.pauseProducing()  # as a full transport does
        connection.send(b"x" * 20_000)
        self.assertEqual("paused", connection.transport.producerState)
        connection.channel.resumeProducing()
        self.assertEqual("paused", connection.transport.producerState)
        self.later.finish()
        self.clock.advance(0)
        self.assertEqual("producing", connection.transport.producerState)

    def test_closing(self) -> None:
        """A closing or lost connection answers no other request, without a timer."""
        first, second = Connection(self.site), Connection(self.site)
        first.send(
            b"GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        self.clock.advance(0)
        self.assertEqual(1, self.page.made)
        self.assertTrue(first.transport.disconnecting)
        second.ask("/page", times=2)
        for connection in (first, second):
            connection.lose()
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual(set(), self.site.connections)


class SilenceTests(ChannelTestCase):
    def test_silent(self) -> None:
        """A request has a minute, even if it arrives byte by byte."""
        for data in (b"", b"G"):
            connection = self.connection()
            for _ in range(60):
                connection.send(data)
                self.assertFalse(connection.transport.disconnecting)
                self.clock.advance(1)
            self.assertTrue(connection.transport.disconnecting)

    def test_between_requests(self) -> None:
        """The timeout starts again after each response, and does not run during one."""
        book = logbook(self)
        connection = self.connection()
        for _ in range(3):
            self.clock.advance(59)
            connection.ask("/later")
            self.clock.advance(600)
            self.later.finish()
        self.assertFalse(connection.transport.disconnecting)
        self.clock.advance(60)
        self.assertTrue(connection.transport.disconnecting)
        self.assertEqual([], book.lines())


class DeadlineTests(ChannelTestCase):
    def assert_aborted_at_deadline(self, connection: Connection, left: int = 0) -> None:
        """Assert that the connection is aborted then, with a log line."""
        book = logbook(self)
        self.clock.advance(119)
        self.assertFalse(connection.transport.disconnected)
        self.clock.advance(1)
        self.assertTrue(connection.transport.disconnected)
        self.assertEqual(set(), self.site.connections)
        words = "the response took longer than 120 s"
        line = f"info closed the connection of a slow client: {words} bytes_left={left}"
        self.assertEqual([line], book.lines())

    def test_unfinished(self) -> None:
        """The deadline of a response begins with its first byte."""
        for path in ("/later", "/page"):
            connection = self.connection()
            connection.ask(path)
            if path == "/page":
                connection.ask("/later")
            self.clock.advance(1200)
            self.later.requests.pop().write(b"<")
            self.assert_aborted_at_deadline(connection)

    def test_next_answer(self) -> None:
        """The deadline begins again with the next response of the connection."""
        connection = self.connection()
        connection.ask("/page")
        self.clock.advance(59)
        connection.ask("/later")
        self.later.requests[0].write(b"<")
        self.assert_aborted_at_deadline(connection)

    def test_not_received(self) -> None:
        """A short response that its client does not receive has the same deadline."""
        connection = self.connection()
        self.patch(connection.channel, "unsent_bytes", lambda: 1)
        connection.ask("/page")
        connection.ask("/later")
        self.assert_aborted_at_deadline(connection, 1)

    def test_closing(self) -> None:
        """A last response that is not received ends at the deadline, too."""
        connection = self.connection()
        connection.send(b"GET /page HTTP/1.0\r\n\r\n")
        self.assertTrue(connection.transport.disconnecting)
        self.assert_aborted_at_deadline(connection)


class RefusalTests(ChannelTestCase):
    def assert_refused(self, request: bytes, status: bytes) -> None:
        """Assert an empty response, a closed connection and no log line."""
        book = logbook(self)
        connection = self.connection()
        connection.send(request)
        head, _, rest = connection.heard().partition(b"\r\n")
        self.assertEqual(b"HTTP/1.1 " + status, head, request[:100])
        self.assertNotIn(b"HTTP/", rest)
        self.assertTrue(rest.endswith(b"\r\n"), rest)
        self.assertTrue(connection.transport.disconnecting, request[:100])
        self.clock.advance(0)
        self.assertEqual((b"", 0), (connection.heard(), self.page.made))
        self.assertEqual(([], []), (book.lines(), self.flushLoggedErrors()))

    def test_bodies(self) -> None:
        """A request with a body is refused, given by a length or by chunks."""
        for fields, body in (
            (b"Content-Length: 5\r\n", b"hello"),
            (b"Content-Length: 10000000\r\n", b"x" * 30000),
            (b"Content-Length: 10000000\r\n", b""),
            (b"Content-Length: 5\r\nExpect: 100-continue\r\n", b""),
            (b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
        ):
            request = b"POST /page HTTP/1.1\r\nHost: x\r\n%b\r\n%b" % (fields, body)
            self.assert_refused(request, b"413 Content Too Large")

    def test_body_that_follows(self) -> None:
        """A body that a client sends despite the refusal is dropped, not answered."""
        connection = self.connection()
        connection.send(b"GET /page HTTP/1.1\r\nContent-Length: 5\r\n\r\n")
        [request] = connection.channel.requests
        connection.send(b"hello")
        self.assertEqual((0, b""), (self.page.made, request.content.read()))

    def test_closed(self) -> None:
        """Data that a client sends after the close of its connection is dropped."""
        for start in (b"", b"GARBAGE\r\n", b"GET / HTTP/1.1\r\nno field\r\nX: y\r\n"):
            connection = self.connection()
            connection.send(start)
            if not start:
                self.clock.advance(REQUEST_TIMEOUT)
            connection.send(b"X: y\r\n" * 100)
            self.assertEqual(b"", connection.channel._buffer, start)

    def test_too_long(self) -> None:
        """A Content-Length that is too long or not a number is a bad request."""
        long_uri, long_field = b"a" * 40_000, b"X: %b" % (b"a" * 16_500)
        lengths = (b"1" * 5000, b"-1", b"+5", b"0x10", b"1,1", "٣".encode())
        for path, field, status in (
            (long_uri, b"X: x", b"414 URI Too Long"),
            (b"page", long_field, b"431 Request Header Fields Too Large"),
            *(
                (b"page", b"Content-Length: %b" % x, b"400 Bad Request")
                for x in lengths
            ),
        ):
            request = b"GET /%b HTTP/1.1\r\n%b\r\n\r\n" % (path, field)
            self.assert_refused(request, status)


class RequestTests(ChannelTestCase):
    def test_client(self) -> None:
        """A client's address is the same through a socket of both families."""
        for client, shown in (
            (IPv4Address("TCP", "10.0.0.1", 1), "10.0.0.1"),
            (IPv6Address("TCP", "::ffff:10.0.0.1", 1), "10.0.0.1"),
            (IPv6Address("TCP", "fd00::ffff:1", 1), "fd00::ffff:1"),
            (UNIXAddress("/run/x.sock"), ""),
        ):
            self.assertEqual(shown, host_of(client))

    def test_absolute_form(self) -> None:
        """A request target may be a whole address, as for a proxy."""
        connection = self.connection()
        for target in ("http://x/page", "HTTPS://x:1/page?a", "http://x/page?http://y"):
            connection.ask(target)
            self.assertIn(b" 200 ", connection.heard(), target)
        for target in ("http://x", "http://x?page", "page", "xpage", "x:/page", "*"):
            connection.ask(target)
            self.assertNotIn(b" 200 ", connection.heard().partition(b"\r\n")[0], target)
        self.assertEqual([], self.flushLoggedErrors())
        for target in ("http://x/later?http://y/z", "/later?http://y/z"):
            self.connection().ask(target)
            self.assertEqual(b"/later?http://y/z", self.later.requests.pop().uri)

    def test_no_body(self) -> None:
        """A Content-Length of 0 is no body; HEAD returns the length alone."""
        book = logbook(self)
        connection = self.connection()
        for method, length in ((b"GET", b"Content-Length: 0\r\n"), (b"HEAD", b"")):
            request = b"%b /page HTTP/1.1\r\nHost: x\r\n%b\r\n" % (method, length)
            connection.send(request)
            answer = connection.heard()
            self.assertIn(b"Content-Length: 3\r\n", answer)
            self.assertEqual(method == b"GET", answer.endswith(b"<1>"))
        self.assertEqual([], book.lines())


class SocketTests(ChannelTestCase):
    def test_socket(self) -> None:
        """Bytes are unsent until the client's machine has acknowledged them."""
        reactor = MemoryReactor()
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        client = socket.socket()
        self.addCleanup(client.close)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.connect(listening.getsockname())
        accepted, _ = listening.accept()
        self.addCleanup(accepted.close)
        port = Port(0, self.site, reactor=reactor)
        port.numberAccepts = 100
        channel = self.site.buildProtocol(CLIENT)
        assert channel is not None
        tcp = Server(accepted, channel, client.getsockname(), port, 1, reactor)
        channel.makeConnection(tcp)
        option = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)
        self.assertEqual((256 * 1024, 20), (option, port.numberAccepts))
        self.assertEqual(128 * 1024, tcp.SEND_LIMIT)  # which a Sender raises
        self.assertEqual(0, channel.unsent_bytes())
        tcp.write(b"x" * 1000)
        self.assertEqual(1000, channel.unsent_bytes())
        tcp.dataBuffer, tcp.offset = b"x" * 100, 40
        self.assertEqual(1060, channel.unsent_bytes())
        tcp.dataBuffer, tcp.offset = b"", 0
        for _ in range(4):
            tcp.write(b"x" * 25_000)
            tcp.doWrite()
        unsent = channel.unsent_bytes()
        self.assertTrue(50_000 < unsent < 101_000, unsent)
        tls = TLSMemoryBIOProtocol(None, channel)
        tls.transport = tcp
        channel.transport = tls
        self.assertEqual(unsent, channel.unsent_bytes())
        client.close()
        channel.connectionLost()


class TlsTests(ChannelTestCase):
    def test_never_hangs_up(self) -> None:
        """The end of a TLS connection takes two: the client has until the deadline."""
        options = Authority("x").issue("localhost").server().options()
        transport = Wire(peerAddress=CLIENT)
        factory = TLSMemoryBIOFactory(options, False, self.site, self.clock)
        client = shake_hands(factory, SSL.Context(SSL.TLS_METHOD), transport)
        [channel] = self.site.connections
        tls: Any = channel.transport
        client.send(b"GET /page HTTP/1.0\r\n\r\n")
        tls.dataReceived(client.bio_read(1 << 16))
        self.clock.advance(119)
        client.bio_write(transport.value())
        self.assertIn(b"<1>", client.recv(1 << 16))
        self.assertFalse(transport.disconnecting or transport.disconnected)
        self.clock.advance(1)
        self.assertTrue(transport.disconnected)
        self.assertEqual(set(), self.site.connections)

    def test_handshake(self) -> None:
        """A TLS handshake on the plain port gets a plain 400, and the end, at once."""
        connection = self.connection()
        connection.send(b"\x16")
        connection.send(b"\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        heard = connection.heard()
        self.assertEqual(b"HTTP/1.1 400 Bad Request", heard.splitlines()[0])
        self.assertEqual(1, heard.count(b"HTTP/1.1"))
        self.assertIn(b"Client sent TLS to an HTTP server", heard)
        self.assertTrue(connection.transport.disconnecting)

    def test_later(self) -> None:
        """The byte is part of a request in all other places."""
        connection = self.connection()
        connection.send(b"GET /page HTTP/1.1\r\nHost: x\r\nA: ")
        connection.send(b"\x16\r\n\r\n")
        self.assertNotIn(b"TLS", connection.heard())

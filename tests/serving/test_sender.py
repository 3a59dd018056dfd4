"""Long bodies, sent as fast as the client receives them."""

import gc
import weakref
from collections.abc import Sequence
from typing import Any

from OpenSSL import SSL
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import ISSLTransport
from twisted.internet.task import Clock
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import directlyProvides

from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.sender import Sender
from api_exporter.serving.site import BoundedSite
from tests.authority import Authority
from tests.web.connection import CLIENT, Connection, Full, Wire, shake_hands


class Transport(Wire):
    """A transport that pauses its producer after each write of a slice."""

    SEND_LIMIT = 0

    def write(self, data: bytes) -> None:
        super().write(data)
        if data.startswith(b"<") and self.producer is not None:
            self.producer.pauseProducing()


class Long(ReadOnlyPage):
    isLeaf = True
    slices: Sequence[bytes] = (b"<0>", b"<1>", b"<2>", b"<3>")
    sender: weakref.ref[Sender]

    def render_GET(self, request: Request) -> int:
        request.setHeader(b"Content-Length", b"%d" % sum(map(len, self.slices)))
        sender = Sender(request, iter(self.slices))
        self.sender = weakref.ref(sender)
        sender.start()
        return NOT_DONE_YET


class SenderTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.page = Long()
        self.site = BoundedSite(self.page, Clock())
        self.transport = Transport(peerAddress=CLIENT)
        self.connection = Connection(self.site, transport=self.transport)
        self.connection.ask()

    def test_paused(self) -> None:
        """A slice is sent when the client has received the previous one."""
        self.assertEqual(512 * 1024, self.transport.SEND_LIMIT)
        for number in range(4):
            self.assertTrue(self.connection.heard().endswith(b"<%d>" % number))
            self.assertEqual(1, len(self.site.running_requests))
            self.connection.channel.resumeProducing()
        self.assertEqual(set(), self.site.running_requests)
        self.connection.lose()

    def test_tls(self) -> None:
        """With TLS, longer slices are cut to 64 KiB."""
        self.connection.lose()
        self.page.slices = [b"<" * 150_000, b"<"]
        transport = Transport(peerAddress=CLIENT)
        directlyProvides(transport, ISSLTransport)
        connection = Connection(self.site, transport=transport)
        connection.ask()
        sent = []
        while self.site.running_requests:
            sent.append(len(connection.heard().rpartition(b"\r\n")[2]))
            connection.channel.resumeProducing()
        self.assertEqual([65_536, 65_536, 18_928, 1], sent)
        connection.lose()

    def test_slow_over_tls(self) -> None:
        """Little is encrypted ahead for a client that does not read."""
        self.connection.lose()
        clock, page = Clock(), Long()
        page.slices = [b"<" * 500_000] * 10
        site = BoundedSite(page, clock)
        options = Authority("x").issue("localhost").server().options()
        transport = Full(peerAddress=CLIENT)
        factory = TLSMemoryBIOFactory(options, False, site, clock)
        client = shake_hands(factory, SSL.Context(SSL.TLS_METHOD), transport)
        assert transport.producer is not None
        transport.producer.resumeProducing()  # the handshake has been sent
        [channel] = site.connections
        tls: Any = channel.transport
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        tls.dataReceived(client.bio_read(1 << 16))
        self.assertTrue(60_000 < len(transport.value()) < 80_000)
        clock.advance(119)
        self.assertFalse(transport.disconnected)
        clock.advance(1)
        self.assertTrue(transport.disconnected)
        gc.disable()
        self.addCleanup(gc.enable)
        transport.producer.stopProducing()  # as Twisted's transports do
        tls.connectionLost(Failure(ConnectionAborted()))
        self.assertIsNone(page.sender())
        self.assertEqual([], clock.getDelayedCalls())

    def test_lost(self) -> None:
        """A lost connection frees the sender at once."""
        gc.disable()
        self.addCleanup(gc.enable)
        assert self.transport.producer is not None
        self.transport.producer.stopProducing()  # as Twisted's transports do
        self.connection.lose()
        self.assertIsNone(self.page.sender())
        self.assertEqual(set(), self.site.running_requests)

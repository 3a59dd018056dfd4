"""Readers that are slow, that vanish, that read nothing, that are too many."""

import gc
import socket
import ssl
import weakref
from collections.abc import Iterator
from typing import Any, cast

from twisted.internet import reactor
from twisted.internet.endpoints import (
    SSL4ClientEndpoint,
    SSL4ServerEndpoint,
    connectProtocol,
)
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import Clock, deferLater
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.serving.channel import MAX_RESPONSE_SECONDS
from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.sender import Sender
from api_exporter.serving.site import BoundedSite
from tests.authority import Authority
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE
from tests.logbook import logbook

SLOW = (
    "info closed the connection of a slow client: the response took longer than 120 s"
)

REQUEST = b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Endless(ReadOnlyPage):
    """More than any buffer takes."""

    slices: weakref.ref[Iterator[bytes]]

    def render_GET(self, request: Request) -> int:
        slices = (b"x" * 512 * 1024 for _ in range(100))
        self.slices = weakref.ref(slices)
        Sender(request, slices).start()
        return NOT_DONE_YET


class Standing(Protocol):
    """Asks for much, reads something of it and stops."""

    transport: TLSMemoryBIOProtocol
    read = False

    def connectionMade(self) -> None:
        self.transport.write(REQUEST % b"/endless")

    def dataReceived(self, _data: bytes) -> None:
        self.read = True
        self.transport.pauseProducing()


class DeadlineTests(TestCase):
    """The server in our own process, with real connections and a clock of our own."""

    timeout = 2 * PATIENCE

    def setUp(self) -> None:
        self.clock = Clock()
        self.endless = Endless()
        tree = Resource()
        tree.putChild(b"endless", self.endless)
        self.site = BoundedSite(tree, self.clock)
        self.book = logbook(self)
        self.port = listening(self, self.site)
        self.timers = len(self.clock.getDelayedCalls())

    async def reader(self, path: bytes) -> socket.socket:
        """Return a client that has requested a page."""
        client = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(client.close)
        client.setblocking(False)
        client.sendall(REQUEST % path)
        await self.pause()
        return client

    async def pause(self) -> None:
        """Many turns of the loop, not one long one: all that can happen happens."""
        for _ in range(30):
            await deferLater(reactor, 0.01)

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.pause()

    async def assert_aborted_at(self, seconds: float) -> None:
        """The only connection stays until then, and is aborted then."""
        await self.advance(seconds - 1)
        self.assertEqual(1, len(self.site.connections))
        await self.advance(1)
        self.assert_gone(1)

    def assert_gone(self, aborted: int = 0) -> None:
        """No connection is left; so many have met their deadline."""
        self.assertEqual(set(), self.site.running_requests)
        self.assertEqual(set(), self.site.connections)
        self.assertEqual(self.timers, len(self.clock.getDelayedCalls()))
        lines = [line.partition(" bytes_left=")[0] for line in self.book.lines()]
        self.assertEqual([SLOW] * aborted, lines)

    async def test_reads_nothing(self) -> None:
        """A client that reads nothing is disconnected at the deadline."""
        await self.reader(b"/endless")
        [channel] = self.site.connections
        self.assertLess(channel.unsent_bytes(), 1_000_000)  # the system's part of it
        transport = weakref.ref(channel.transport)
        del channel
        gc.disable()
        self.addCleanup(gc.enable)
        await self.assert_aborted_at(MAX_RESPONSE_SECONDS)
        self.assertIsNone(self.endless.slices())
        self.assertIsNone(transport(), "it holds what was not sent")

    def secured(self) -> int:
        """A port at which the same site is served over TLS."""
        factory = Authority("x").issue("localhost").server().options()
        server = SSL4ServerEndpoint(reactor, 0, factory, interface="127.0.0.1")
        return listening(self, self.site, server)

    async def test_never_hangs_up(self) -> None:
        """The end of a TLS connection takes two; the client's has the same deadline."""

        def ask(port: int) -> ssl.SSLSocket:
            client = handshake(port)
            client.sendall(b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n")
            while client.recv(65536):
                pass
            return client

        client = await deferToThread(ask, self.secured())
        self.addCleanup(client.close)
        await self.pause()
        await self.assert_aborted_at(MAX_RESPONSE_SECONDS)

    async def test_encrypted(self) -> None:
        """Little is encrypted ahead for a slow reader, which has the deadline, too."""
        port = self.secured()
        client = SSL4ClientEndpoint(reactor, "127.0.0.1", port, CertificateOptions())
        reader = await connectProtocol(client, Standing())
        for _ in range(100):
            await self.pause()
            if reader.read:
                break
        [channel] = self.site.connections
        below: Any = cast(TLSMemoryBIOProtocol, channel.transport).transport
        self.assertGreater(channel.unsent_bytes(), 0)
        self.assertLess(len(below.dataBuffer) + below._tempDataLen, 256 * 1024)
        await self.assert_aborted_at(MAX_RESPONSE_SECONDS)
        self.assertIsNone(self.endless.slices())


def handshake(port: int) -> ssl.SSLSocket:
    """A TLS connection whose client never closes it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port))
    return context.wrap_socket(plain)

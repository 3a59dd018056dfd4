"""Long bodies, sent as fast as the client receives them."""

import gc
import weakref

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.sender import Sender
from api_exporter.serving.site import BoundedSite
from tests.web.connection import CLIENT, Connection


class Transport(StringTransport):
    """A transport that pauses its producer after each write of a slice."""

    SEND_LIMIT = 0

    def write(self, data: bytes) -> None:
        super().write(data)
        if data.startswith(b"<") and self.producer is not None:
            self.producer.pauseProducing()


class Long(ReadOnlyPage):
    isLeaf = True
    sender: weakref.ref[Sender]

    def render_GET(self, request: Request) -> int:
        request.setHeader(b"Content-Length", b"12")
        sender = Sender(request, (b"<%d>" % number for number in range(4)))
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

    def test_lost(self) -> None:
        """A lost connection frees the sender at once."""
        gc.disable()
        self.addCleanup(gc.enable)
        assert self.transport.producer is not None
        self.transport.producer.stopProducing()  # as Twisted's transports do
        self.connection.lose()
        self.assertIsNone(self.page.sender())
        self.assertEqual(set(), self.site.running_requests)

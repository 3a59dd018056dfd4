"""The limits of pending service discovery responses."""

from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.serving.site import BoundedSite
from api_exporter.web import context
from api_exporter.web.context import MAX_PENDING
from tests.parts import DelayedCompute
from tests.web.connection import CLIENT, Connection
from tests.web.watched import Watched


class SlowTransport(StringTransport):
    """The transport of a client that reads only the first bytes."""

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.producer is not None:
            self.producer.pauseProducing()

    def abortConnection(self) -> None:
        self.disconnecting = True


class SlowConnection(Connection):
    """A connection whose client requests targets and does not read them."""

    def __init__(self, site: BoundedSite) -> None:
        super().__init__(site, transport=SlowTransport(peerAddress=CLIENT))
        self.send(b"GET /sd?port=1 HTTP/1.1\r\nHost: x\r\n\r\n")

    @property
    def aborted(self) -> bool:
        aborted: bool = self.transport.disconnecting
        return aborted


class AnswersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.compute = DelayedCompute()
        self.watched = Watched(compute=self.compute).start()
        self.site = BoundedSite(self.watched.tree, self.watched.clock)

    def slow(self) -> SlowConnection:
        """Connect a client and begin to send its response."""
        connection = SlowConnection(self.site)
        while self.compute.waiting:
            self.compute.go()
        return connection

    def test_one_at_a_time(self) -> None:
        """One response is computed at a time, so a refresh waits for one at most."""
        for _ in range(3):
            SlowConnection(self.site)
        for _ in range(3):
            self.assertEqual(1, len(self.compute.waiting))
            self.compute.go()
        self.assertEqual([], self.compute.waiting)

    def test_number(self) -> None:
        """Above the limit the oldest response in transfer is aborted."""
        clients = [self.slow() for _ in range(MAX_PENDING)]
        self.assertEqual(0, sum(client.aborted for client in clients))
        self.slow()
        self.assertEqual([0], [n for n, client in enumerate(clients) if client.aborted])

    def test_bytes(self) -> None:
        """Above the limit of bytes the oldest response is aborted too."""
        self.patch(context, "MAX_PENDING_BYTES", 1)
        first, second = self.slow(), self.slow()
        self.assertEqual((True, False), (first.aborted, second.aborted))

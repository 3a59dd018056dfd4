"""How many answers of service discovery there are at once."""

from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.serving.site import BoundedSite
from api_exporter.web import context
from api_exporter.web.context import MOST_ANSWERS
from tests.parts import DelayedCompute
from tests.web.connection import CLIENT, Connection
from tests.web.watched import Watched


class SlowTransport(StringTransport):
    """The transport of a client that reads nothing after the first bytes."""

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.producer is not None:
            self.producer.pauseProducing()

    def abortConnection(self) -> None:
        self.disconnecting = True


class SlowConnection(Connection):
    """A connection whose client asks for targets, and does not read."""

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
        """One more client, to which its answer is being sent."""
        connection = SlowConnection(self.site)
        while self.compute.waiting:
            self.compute.go()
        return connection

    def test_one_at_a_time(self) -> None:
        """One answer is made at a time: a refresh waits for one at most."""
        for _ in range(3):
            SlowConnection(self.site)
        for _ in range(3):
            self.assertEqual(1, len(self.compute.waiting))
            self.compute.go()
        self.assertEqual([], self.compute.waiting)

    def test_number(self) -> None:
        """The oldest answer that is being sent makes room for one more."""
        clients = [self.slow() for _ in range(MOST_ANSWERS)]
        self.assertEqual(0, sum(client.aborted for client in clients))
        self.slow()
        self.assertEqual([0], [n for n, client in enumerate(clients) if client.aborted])

    def test_bytes(self) -> None:
        """So it does where all of them together would be too long."""
        self.patch(context, "MOST_BYTES", 1)
        first, second = self.slow(), self.slow()
        self.assertEqual((True, False), (first.aborted, second.aborted))

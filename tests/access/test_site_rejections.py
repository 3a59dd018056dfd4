"""Rejections are logged, but not each of them."""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.site import COUNT_INTERVAL, MAX_CLIENTS, Rejections
from tests.logbook import logbook


class RejectionsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.rejections = Rejections(self.clock)
        self.book = logbook(self)

    def test_once_a_minute(self) -> None:
        """The first of an address is logged at once, the number after a minute."""
        for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1"):
            self.rejections.add(address, "no token")
        start = "warning rejected 10.0.0"
        first = [f"{start}.1: no token", f"{start}.2: no token"]
        self.clock.advance(COUNT_INTERVAL - 1)
        self.assertEqual(first, self.book.lines())
        self.clock.advance(1)
        count = "warning rejected 10.0.0.1: 3 times in one minute"
        self.assertEqual([*first, count], self.book.lines())
        self.assertEqual([], self.clock.getDelayedCalls())
        self.rejections.add("", "no token")
        self.assertEqual("warning rejected a client: no token", self.book.lines()[-1])

    def test_many(self) -> None:
        """Only the first addresses have lines of their own."""
        for number in range(10 * MAX_CLIENTS):
            self.rejections.add(f"10.0.{number // 256}.{number % 256}", "no token")
        self.assertEqual(MAX_CLIENTS + 1, len(self.book.lines()))
        for _ in range(2):
            self.rejections.stop()
            self.assertEqual([], self.clock.getDelayedCalls())
        *_, last = self.book.lines()
        count = f"{9 * MAX_CLIENTS} times in one minute"
        self.assertEqual(f"warning rejected other addresses: {count}", last)
        self.assertEqual(1, str(self.book.lines()).count(count))

"""Who may not come in is told, but not again and again."""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.rejections import MINUTE, MOST, Rejections
from tests.logbook import logbook


class RejectionsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.rejections = Rejections(self.clock)
        self.book = logbook(self)

    def test_once_a_minute(self) -> None:
        """The first of an address at once, and at the end of the minute how many."""
        for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1"):
            self.rejections.add(address, "no token")
        first = [
            "warning 10.0.0.1 may not come in: no token",
            "warning 10.0.0.2 may not come in: no token",
        ]
        self.assertEqual(first, self.book.lines())
        self.clock.advance(MINUTE)
        count = "warning 10.0.0.1 may not come in: 3 times in a minute"
        self.assertEqual([*first, count], self.book.lines())
        self.assertEqual([], self.clock.getDelayedCalls())
        self.rejections.add("", "no token")
        self.assertEqual(
            "warning a client may not come in: no token", self.book.lines()[-1]
        )

    def test_many(self) -> None:
        """Of a crowd only the first ones are told one by one."""
        for number in range(10 * MOST):
            self.rejections.add(f"10.0.{number // 256}.{number % 256}", "no token")
        self.assertEqual(MOST + 1, len(self.book.lines()))
        self.rejections.stop()
        self.assertEqual(
            f"warning other addresses may not come in: {9 * MOST} times in a minute",
            self.book.lines()[-1],
        )
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_quiet(self) -> None:
        """Where there was nobody there is nothing to stop."""
        self.rejections.stop()
        self.assertEqual([], self.book.lines())

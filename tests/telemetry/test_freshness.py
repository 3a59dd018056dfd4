"""How old is too old."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.freshness import max_age


class MaxAgeTests(SynchronousTestCase):
    def test_default(self) -> None:
        """Five minutes, or three periods where that is longer."""
        self.assertEqual([300, 900], [max_age(p) for p in (30, 300)])

    def test_wanted(self) -> None:
        """The setting decides, but metrics never end before the next is overdue."""
        self.assertEqual([60, 450], [max_age(p, 60) for p in (30, 300)])
        self.assertEqual([45, 45], [max_age(p, 1) for p in (1, 30)])

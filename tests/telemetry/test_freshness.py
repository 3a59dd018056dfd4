"""The maximum age of metrics."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.freshness import max_age


class MaxAgeTests(SynchronousTestCase):
    def test_default(self) -> None:
        """The default is five minutes or three intervals, whichever is longer."""
        self.assertEqual([300, 900], [max_age(p) for p in (30, 300)])

    def test_wanted(self) -> None:
        """Metrics never expire before the next refresh is overdue."""
        self.assertEqual([60, 450], [max_age(p, 60) for p in (30, 300)])
        self.assertEqual([45, 45], [max_age(p, 1) for p in (1, 30)])

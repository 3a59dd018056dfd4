"""The freshness of a resource, and the maximum age of metrics."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.freshness import Freshness, max_age


class FreshnessTests(SynchronousTestCase):
    def test_refused(self) -> None:
        """A refused resource has no rejected records: none of it is published."""
        read = Freshness(period=30.0).succeeded(records=3, rejected=2, seconds=1, at=5)
        refused = read.refused(1.0, 35.0)
        self.assertEqual(
            (5, 3, 0), (refused.last_success, refused.records, refused.rejected)
        )

    def test_max_age(self) -> None:
        """Metrics never expire before the next refresh is overdue."""
        self.assertEqual([300, 900], [max_age(p) for p in (30, 300)])
        self.assertEqual([60, 450], [max_age(p, 60) for p in (30, 300)])
        self.assertEqual([45, 45], [max_age(p, 1) for p in (1, 30)])

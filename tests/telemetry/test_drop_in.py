"""What another exporter counts of its scrapes."""

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import UpstreamError
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.drop_in import SUBJECTS, ScrapesTelemetry
from tests.collectors.incumbent import OF_SCRAPES, PREFIX

DOWN = UpstreamError("timeout", "no answer")


class ScrapesTelemetryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.registry = CollectorRegistry()
        periods = dict.fromkeys(("peers", *SUBJECTS), 30.0)
        self.ours = AccountTelemetry(
            registry=self.registry,
            periods=periods,
            ended=[ScrapesTelemetry(self.registry).ended],
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"netbird_{name}", labels)

    def test_names(self) -> None:
        """The names are that program's, of counters that begin at 0 and histograms."""
        kinds = {
            family.name: family.type
            for family in self.registry.collect()
            if family.name.startswith("netbird_") and "_scrape_" in family.name
        }
        self.assertEqual(
            {
                f"{PREFIX}{name.removesuffix('_total')}": "counter"
                if name.endswith("_total")
                else "histogram"
                for name in OF_SCRAPES
            },
            kinds,
        )
        for subject in SUBJECTS:
            name = f"{subject}_scrape_errors_total"
            self.assertEqual(0, self.value(name, error_type=f"fetch_{subject}"))

    def test_refreshes(self) -> None:
        """Each refresh counts with its seconds, a failed one as an error, too."""
        self.ours.succeeded("groups", records=5, rejected=0, seconds=0.4, at=1)
        self.ours.failed("groups", DOWN, seconds=2, at=2)
        self.ours.unsupported("groups", seconds=0.1, at=3)
        name = "groups_scrape_duration_seconds"
        self.assertEqual(3, self.value(f"{name}_count"))
        self.assertEqual(2.5, self.value(f"{name}_sum"))
        self.assertEqual(2, self.value(f"{name}_bucket", le="0.5"))
        errors = {
            subject: self.value(
                f"{subject}_scrape_errors_total", error_type=f"fetch_{subject}"
            )
            for subject in SUBJECTS
        }
        self.assertEqual({**dict.fromkeys(SUBJECTS, 0), "groups": 1}, errors)

    def test_others(self) -> None:
        """What that program does not count is not counted."""
        self.ours.failed("peers", DOWN, seconds=2, at=2)
        self.assertIsNone(self.value("peers_scrape_duration_seconds_count"))
        for subject in SUBJECTS:
            self.assertEqual(0, self.value(f"{subject}_scrape_duration_seconds_count"))

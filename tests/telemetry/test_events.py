"""The metrics of the audit log."""

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.logs import EventsTelemetry


class EventsTelemetryTests(SynchronousTestCase):
    def test_start(self) -> None:
        """Before the first write, the log counts as writable."""
        registry = CollectorRegistry()
        EventsTelemetry(registry)
        values = {"writable": 1, "written_total": 0, "missed_total": 0}
        for name, expected in values.items():
            value = registry.get_sample_value(f"api_exporter_audit_events_{name}")
            self.assertEqual(expected, value, name)

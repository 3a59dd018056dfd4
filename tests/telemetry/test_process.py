"""The metrics of the process."""

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.gauges import text
from api_exporter.telemetry.process import (
    LAG_INTERVAL,
    LagMeter,
    ProcessTelemetry,
    register_access_metrics,
)
from api_exporter.version import Build


class ProcessTelemetryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.threads = ThreadPool(2, 2)
        self.registry = CollectorRegistry()
        ProcessTelemetry(
            registry=self.registry,
            build=Build(version="1.2.3", commit="abc"),
            threads=[self.threads, ThreadPool(0, 1)],
            dropped=lambda: 7,
            created=5,
        )

    def test_python(self) -> None:
        """Memory, garbage collection and the version of Python have metrics."""
        families = {family.name: family for family in self.registry.collect()}
        expected = {"process_resident_memory_bytes", "python_gc_collections"}
        self.assertLessEqual(expected | {"python_info"}, families.keys())
        samples = families["api_exporter_reactor_lag_seconds"].samples
        ends = [s.labels["le"] for s in samples if "le" in s.labels]
        limits = ["0.01", "0.05", "0.1", "0.25", "0.5", "1.0", "5.0", "+Inf"]
        self.assertEqual(limits, ends)

    def test_counters(self) -> None:
        """Rejected requests and dropped log lines are counted."""
        register_access_metrics(
            self.registry, is_valid=lambda: True, loaded_at=lambda: 9.0
        )()
        for name, count in (("web_unauthorized", 1), ("log_lines_dropped", 7)):
            value = self.registry.get_sample_value(f"api_exporter_{name}_total")
            self.assertEqual(count, value, name)

    def test_build(self) -> None:
        """The build has all labels, empty if unknown."""
        lines = text(self.registry, in_openmetrics=False).decode().splitlines()
        [line] = [x for x in lines if x.startswith("api_exporter_build_info")]
        self.assertRegex(line, r'built="",commit="abc",python=.*,version="1.2.3"} 1.0$')

    def test_threads(self) -> None:
        """Threads are counted at each scrape."""
        value = self.registry.get_sample_value
        self.assertEqual(0, value("api_exporter_reactor_threads"))
        self.threads.start()
        self.addCleanup(self.threads.stop)
        self.assertEqual(2, value("api_exporter_reactor_threads"))
        self.assertEqual(0, value("api_exporter_reactor_threads_in_use"))


class LagMeterTests(SynchronousTestCase):
    def test_lag(self) -> None:
        """The delay of a timer is reported every five seconds."""
        clock, seen = Clock(), list[float]()
        meter = LagMeter(clock, seen.append)
        meter.stopService()  # without a start it does nothing
        meter.startService()
        clock.advance(LAG_INTERVAL)
        clock.advance(LAG_INTERVAL + 0.7)
        self.assertEqual([0.0, 0.7], [round(lag, 6) for lag in seen])
        self.assertEqual(5.0, LAG_INTERVAL)
        meter.stopService()
        self.assertFalse(meter.running)
        self.assertEqual([], clock.getDelayedCalls())

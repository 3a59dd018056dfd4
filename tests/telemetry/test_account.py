"""An account's own metrics: what is there from the start, what appears when."""

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import REASONS, Attempt, UpstreamError
from api_exporter.telemetry.account import AccountTelemetry

DOWN = UpstreamError("timeout", "no answer")


def telemetry() -> tuple[AccountTelemetry, CollectorRegistry]:
    registry = CollectorRegistry()
    periods = {"peers": 30.0, "groups": 300.0}
    return AccountTelemetry(registry=registry, periods=periods), registry


def attempt(status: int | None = 200, number: int = 1) -> Attempt:
    return Attempt(
        path="api/peers",
        number=number,
        started=0,
        status=status,
        received=10,
        seconds=0.3,
    )


def failed(path: str, at: float) -> Attempt:
    return Attempt(
        path=path,
        number=1,
        started=at,
        status=None,
        received=0,
        seconds=0.3,
        error=str(DOWN),
        reason=DOWN.reason,
    )


class AccountTelemetryTests(SynchronousTestCase):
    def test_at_the_start(self) -> None:
        """Counters start at 0 for all they know; gauges are absent until known."""
        _, registry = telemetry()
        value = registry.get_sample_value
        for name in ("peers", "groups"):
            labels = {"resource": name}
            self.assertEqual(0, value("api_exporter_refreshes_total", labels))
            self.assertEqual(0, value("api_exporter_refresh_failures_total", labels))
            for gauge in ("up", "supported", "records", "rejected_records"):
                self.assertIsNone(value(f"api_exporter_resource_{gauge}", labels))
        for reason in REASONS:
            name = "api_exporter_refresh_failure_reasons_total"
            self.assertEqual(0, value(name, {"reason": reason}))
        self.assertIsNone(value("netbird_api_up"))
        self.assertEqual(
            300,
            value(
                "api_exporter_resource_refresh_interval_seconds", {"resource": "groups"}
            ),
        )

    def test_success(self) -> None:
        """A good refresh shows in all gauges of its resource, and in `up` for peers."""
        ours, registry = telemetry()
        ours.succeeded("peers", records=5, rejected=1, seconds=0.4, at=1000.5)
        value, labels = registry.get_sample_value, {"resource": "peers"}
        self.assertEqual(1, value("netbird_api_up"))
        for name, expected in (
            ("resource_up", 1),
            ("resource_supported", 1),
            ("resource_records", 5),
            ("resource_rejected_records", 1),
            ("resource_last_success_timestamp_seconds", 1000.5),
            ("refresh_duration_seconds", 0.4),
            ("refreshes_total", 1),
            ("refresh_failures_total", 0),
        ):
            self.assertEqual(expected, value(f"api_exporter_{name}", labels), name)

    def test_no_records(self) -> None:
        """An empty network has 0 records, which is not the same as unknown."""
        ours, registry = telemetry()
        ours.succeeded("peers", records=0, rejected=0, seconds=0.4, at=1000.5)
        for name in ("records", "rejected_records"):
            self.assertEqual(
                0,
                registry.get_sample_value(
                    f"api_exporter_resource_{name}", {"resource": "peers"}
                ),
            )

    def test_failure(self) -> None:
        """A failed refresh is counted once by resource and once by reason."""
        ours, registry = telemetry()
        ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=1000)
        ours.failed("peers", DOWN, seconds=30, at=1030)
        value, labels = registry.get_sample_value, {"resource": "peers"}
        self.assertEqual(0, value("netbird_api_up"))
        self.assertEqual(0, value("api_exporter_resource_up", labels))
        self.assertEqual(2, value("api_exporter_refreshes_total", labels))
        self.assertEqual(1, value("api_exporter_refresh_failures_total", labels))
        reasons = "api_exporter_refresh_failure_reasons_total"
        self.assertEqual(1, value(reasons, {"reason": "timeout"}))
        success = "api_exporter_resource_last_success_timestamp_seconds"
        self.assertEqual(1000, value(success, labels))

    def test_failing_from_the_start(self) -> None:
        """Peers that have never been read make `up` 0, not absent."""
        ours, registry = telemetry()
        ours.failed("peers", DOWN, seconds=30, at=1030)
        self.assertEqual(0, registry.get_sample_value("netbird_api_up"))

    def test_unsupported(self) -> None:
        """A resource that the NetBird API does not have is neither up nor down."""
        ours, registry = telemetry()
        ours.unsupported("groups", seconds=0.1, at=1000)
        value, labels = registry.get_sample_value, {"resource": "groups"}
        self.assertIsNone(value("api_exporter_resource_up", labels))
        self.assertEqual(0, value("api_exporter_resource_supported", labels))
        self.assertEqual(0, value("api_exporter_refresh_failures_total", labels))

    def test_withdrawn(self) -> None:
        """What has been withdrawn is not up, whatever its newest refresh was like."""
        ours, registry = telemetry()
        value = registry.get_sample_value
        for name in ("peers", "groups"):
            ours.succeeded(name, records=5, rejected=0, seconds=0.4, at=1000)
            ours.withdrawn(name)
            self.assertEqual("ended", ours.standings[name].state(1000))
            self.assertEqual(0, value("api_exporter_resource_up", {"resource": name}))
        self.assertEqual(0, value("netbird_api_up"))
        ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=2000)
        self.assertEqual(1, value("netbird_api_up"))

    def test_failed_attempt(self) -> None:
        """A failed attempt for the peers is told at once, before its round ends."""
        ours, registry = telemetry()
        value = registry.get_sample_value
        ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=1000)
        ours.attempted(failed("api/groups", 1030))
        self.assertEqual(1, value("netbird_api_up"))
        ours.attempted(failed("api/peers", 1030))
        self.assertEqual(0, value("netbird_api_up"))
        name = "api_exporter_refresh_failures_total"
        self.assertEqual(0, value(name, {"resource": "peers"}))
        ours.attempted(attempt())  # its body has yet to be decoded
        self.assertEqual(0, value("netbird_api_up"))
        ours.failed("peers", DOWN, seconds=30, at=1090)
        self.assertEqual(1030.3, ours.standings["peers"].failing_since)
        ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=1100)
        self.assertEqual(1, value("netbird_api_up"))

    def test_first_attempt_fails(self) -> None:
        """The very first failed attempt makes `up` 0, not absent."""
        ours, registry = telemetry()
        ours.attempted(failed("api/peers", 1030))
        self.assertEqual(0, registry.get_sample_value("netbird_api_up"))

    def test_changed(self) -> None:
        """Who wants to know is called whenever `up` changes, and at no other time."""
        ours, registry = telemetry()
        seen: list[float | None] = []
        value = registry.get_sample_value
        ours.changed = lambda: seen.append(value("netbird_api_up"))
        for at in (1, 2):
            ours.attempted(failed("api/peers", at))
            ours.failed("peers", DOWN, seconds=30, at=at)
            ours.failed("groups", DOWN, seconds=30, at=at)
        for at in (3, 4):
            ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=at)
        ours.withdrawn("peers")
        self.assertEqual([0, 1, 0], seen)

    def test_changed_once(self) -> None:
        """Who is called sees all that has changed, however the first refresh ends."""
        seen: list[str] = []
        for end in (
            lambda t: t.succeeded("peers", records=5, rejected=0, seconds=1, at=1),
            lambda t: t.failed("peers", DOWN, seconds=1, at=1),
        ):
            ours, _ = telemetry()
            ours.changed = lambda ours=ours: seen.append(ours.summary(1))  # type: ignore[misc]
            end(ours)
        self.assertEqual(
            ["peers fresh, 5 peers, 1.0 s", "peers failing: no answer"], seen
        )

    def test_budget(self) -> None:
        """The budget is told once there is one."""
        name, known = "api_exporter_request_budget_per_minute", [None, 4.5]
        registry = CollectorRegistry()
        AccountTelemetry(
            registry=registry, periods={"peers": 30.0}, budget=lambda: known.pop(0)
        )
        self.assertIsNone(registry.get_sample_value(name))
        self.assertEqual(4.5, registry.get_sample_value(name))

    def test_attempts(self) -> None:
        """Every request on the wire is counted by its status, retries once more."""
        ours, registry = telemetry()
        ours.attempted(attempt(None))
        self.assertIs(False, ours.reachable)
        ours.attempted(attempt(200, number=2))
        self.assertIs(True, ours.reachable)
        value = registry.get_sample_value
        requests = "api_exporter_upstream_requests_total"
        self.assertEqual(1, value(requests, {"code": "none"}))
        self.assertEqual(1, value(requests, {"code": "200"}))
        self.assertEqual(1, value("api_exporter_upstream_retries_total"))
        self.assertEqual(20, value("api_exporter_upstream_received_bytes_total"))
        seconds = "api_exporter_upstream_request_duration_seconds"
        self.assertEqual(2, value(f"{seconds}_count"))

    def test_no_such_status(self) -> None:
        """Numbers that are no status share one label, so that it has few values."""
        ours, registry = telemetry()
        for status in (-1, 0, 99, 600, 10**9):
            ours.attempted(attempt(status))
        requests = "api_exporter_upstream_requests_total"
        self.assertEqual(5, registry.get_sample_value(requests, {"code": "other"}))

    def test_recent(self) -> None:
        """The newest twenty requests are remembered, whatever became of them."""
        ours, _ = telemetry()
        for number in range(1, 31):
            ours.attempted(attempt(number=number))
        self.assertEqual(
            list(range(11, 31)), [attempt.number for attempt in ours.recent]
        )

    def test_states(self) -> None:
        """Every resource is in one of five states."""
        ours, _ = telemetry()
        ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=1000)
        for now, state in ((1000, "fresh"), (1045, "fresh"), (1046, "late")):
            self.assertEqual(state, ours.standings["peers"].state(now))
        ours.failed("peers", DOWN, seconds=30, at=1060)
        self.assertEqual("failing", ours.standings["peers"].state(1060))
        self.assertEqual("starting", ours.standings["groups"].state(1060))
        ours.unsupported("groups", seconds=0.1, at=1000)
        self.assertEqual("unsupported", ours.standings["groups"].state(9000))

    def test_failing_since(self) -> None:
        """The first of the failures in a row is the one that counts."""
        ours, _ = telemetry()
        for at in (0, 30, 60):
            ours.failed("peers", DOWN, seconds=30, at=at)
        self.assertEqual(0, ours.standings["peers"].failing_since)
        ours.succeeded("peers", records=5, rejected=0, seconds=0.4, at=90)
        self.assertIsNone(ours.standings["peers"].failing_since)
        ours.failed("peers", DOWN, seconds=30, at=120)
        self.assertEqual(120, ours.standings["peers"].failing_since)

    def test_summary(self) -> None:
        """Our state fits into one line."""
        ours, _ = telemetry()
        self.assertEqual("peers starting", ours.summary(1000))
        ours.succeeded("peers", records=5, rejected=0, seconds=0.44, at=1000)
        self.assertEqual("peers fresh, 5 peers, 0.4 s", ours.summary(1001))
        self.assertEqual("peers late, 5 peers, 0.4 s", ours.summary(1100))
        ours.failed("groups", DOWN, seconds=1, at=1001)
        self.assertEqual(
            "peers fresh, 5 peers, 0.4 s, failing: groups", ours.summary(1001)
        )
        ours.failed("peers", DOWN, seconds=1, at=1002)
        self.assertEqual("peers failing: no answer", ours.summary(1003))

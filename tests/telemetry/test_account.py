"""The exporter's metrics of one account: their values and absence."""

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import NO_RECORDS
from api_exporter.ports import REASONS, Attempt, UpstreamError
from api_exporter.refresh.life import FreshnessByName, LastBody, lives
from api_exporter.refresh.refresh_log import RefreshLog
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.freshness import Freshness
from api_exporter.world import World

DOWN = UpstreamError("timeout", "no answer")


class RecordingLog(RefreshLog):
    """The refresh log of an account, with times from the test."""

    def __init__(self) -> None:
        self._at = 0.0
        lives_ = lives({"peers": 30.0, "groups": 300.0})
        self.freshness = FreshnessByName(lives_)
        self.registry = CollectorRegistry()
        self.telemetry = AccountTelemetry(
            registry=self.registry, freshness=self.freshness
        )
        world = World(Clock(), lambda: self._at, lambda: 0.5)
        super().__init__(lives=lives_, telemetry=self.telemetry, world=world)

    def read(self, name: str, at: float = 1000, seconds: float = 0.4) -> None:
        """Record a successful refresh with five records and a rejected one."""
        self._at = at
        body = LastBody(
            digest=(), records=5, rejected=1, errors=(), recognized=NO_RECORDS
        )
        self.succeeded(name, body, seconds)

    def fails(self, name: str, at: float, seconds: float = 30) -> None:
        self._at = at
        self.failed(name, DOWN, seconds)

    def attempt_ended(self, attempt: Attempt) -> None:
        self.telemetry.count_attempt(attempt)
        self.record_attempt(attempt)


def telemetry() -> tuple[RecordingLog, CollectorRegistry]:
    log = RecordingLog()
    return log, log.registry


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
        """Counters start at 0; gauges are absent until their value is known."""
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
        """A successful refresh sets all gauges of its resource, and `up` for peers."""
        log, registry = telemetry()
        log.read("peers", 1000.5, 0.4)
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
        """An empty network has 0 records; the series is not absent."""
        log, registry = telemetry()
        body = LastBody(
            digest=(), records=0, rejected=0, errors=(), recognized=NO_RECORDS
        )
        log.succeeded("peers", body, 0.4)
        for name in ("records", "rejected_records"):
            self.assertEqual(
                0,
                registry.get_sample_value(
                    f"api_exporter_resource_{name}", {"resource": "peers"}
                ),
            )

    def test_failure(self) -> None:
        """A failed refresh is counted once by resource and once by reason."""
        log, registry = telemetry()
        log.read("peers", 1000, 0.4)
        log.fails("peers", 1030, 30)
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
        """`up` is 0, not absent, if the peers were never read."""
        log, registry = telemetry()
        log.fails("peers", 1030, 30)
        self.assertEqual(0, registry.get_sample_value("netbird_api_up"))

    def test_unsupported(self) -> None:
        """A resource that the NetBird API does not have is neither up nor down."""
        log, registry = telemetry()
        log.unsupported("groups", "no {resource}", 0.1)
        value, labels = registry.get_sample_value, {"resource": "groups"}
        self.assertIsNone(value("api_exporter_resource_up", labels))
        self.assertEqual(0, value("api_exporter_resource_supported", labels))
        self.assertEqual(0, value("api_exporter_refresh_failures_total", labels))

    def test_withdrawn(self) -> None:
        """A resource with expired metrics is not up until the next success."""
        log, registry = telemetry()
        value = registry.get_sample_value
        for name in ("peers", "groups"):
            log.read(name, 1000, 0.4)
            log.expired(name, 300)
            self.assertEqual("expired", log.freshness[name].state(1000))
            self.assertEqual(0, value("api_exporter_resource_up", {"resource": name}))
        self.assertEqual(0, value("netbird_api_up"))
        log.read("peers", 2000, 0.4)
        self.assertEqual(1, value("netbird_api_up"))

    def test_failed_attempt(self) -> None:
        """A failed request for the peers sets `up` to 0 before the refresh ends."""
        log, registry = telemetry()
        value = registry.get_sample_value
        log.read("peers", 1000, 0.4)
        log.attempt_ended(failed("api/groups", 1030))
        self.assertEqual(1, value("netbird_api_up"))
        log.attempt_ended(failed("api/peers", 1030))
        self.assertEqual(0, value("netbird_api_up"))
        name = "api_exporter_refresh_failures_total"
        self.assertEqual(0, value(name, {"resource": "peers"}))
        log.attempt_ended(attempt())  # its body has yet to be decoded
        self.assertEqual(0, value("netbird_api_up"))
        log.fails("peers", 1090, 30)
        self.assertEqual(1030.3, log.freshness["peers"].failing_since)
        log.read("peers", 1100, 0.4)
        self.assertEqual(1, value("netbird_api_up"))

    def test_first_attempt_fails(self) -> None:
        """A failed first request sets `up` to 0."""
        log, registry = telemetry()
        log.attempt_ended(failed("api/peers", 1030))
        self.assertEqual(0, registry.get_sample_value("netbird_api_up"))

    def test_changed(self) -> None:
        """`changed` is called exactly when `up` changes."""
        log, registry = telemetry()
        seen: list[float | None] = []
        value = registry.get_sample_value
        log.telemetry.on_up_changed = lambda: seen.append(value("netbird_api_up"))
        for at in (1, 2):
            log.attempt_ended(failed("api/peers", at))
            log.fails("peers", at, 30)
            log.fails("groups", at, 30)
        for at in (3, 4):
            log.read("peers", at, 0.4)
        log.expired("peers", 300)
        self.assertEqual([0, 1, 0], seen)

    def test_changed_once(self) -> None:
        """`changed` is called after all values of the first refresh are set."""
        seen: list[str] = []
        for end in (lambda t: t.read("peers", 1, 1), lambda t: t.fails("peers", 1, 1)):
            log, _ = telemetry()
            telemetry_ = log.telemetry
            telemetry_.on_up_changed = lambda t=telemetry_: seen.append(t.summary(1))  # type: ignore[misc]
            end(log)
        self.assertEqual(
            ["peers fresh, 5 peers, 1.0 s", "peers failing: no answer"], seen
        )

    def test_budget(self) -> None:
        """The budget is absent while it is unknown."""
        name, known = "api_exporter_request_budget_per_minute", [None, 4.5]
        registry = CollectorRegistry()
        AccountTelemetry(
            registry=registry,
            freshness={"peers": Freshness(period=30.0)},
            budget=lambda: known.pop(0),
        )
        self.assertIsNone(registry.get_sample_value(name))
        self.assertEqual(4.5, registry.get_sample_value(name))

    def test_attempts(self) -> None:
        """Each request is counted by its status; retries are also counted apart."""
        log, registry = telemetry()
        log.attempt_ended(attempt(None))
        self.assertIs(False, log.telemetry.reachable)
        log.attempt_ended(attempt(200, number=2))
        self.assertIs(True, log.telemetry.reachable)
        value = registry.get_sample_value
        requests = "api_exporter_upstream_requests_total"
        self.assertEqual(1, value(requests, {"code": "none"}))
        self.assertEqual(1, value(requests, {"code": "200"}))
        self.assertEqual(1, value("api_exporter_upstream_retries_total"))
        self.assertEqual(20, value("api_exporter_upstream_received_bytes_total"))
        seconds = "api_exporter_upstream_request_duration_seconds"
        self.assertEqual(2, value(f"{seconds}_count"))

    def test_no_such_status(self) -> None:
        """Invalid status codes share one label value."""
        log, registry = telemetry()
        for status in (-1, 0, 99, 600, 10**9):
            log.attempt_ended(attempt(status))
        requests = "api_exporter_upstream_requests_total"
        self.assertEqual(5, registry.get_sample_value(requests, {"code": "other"}))

    def test_recent(self) -> None:
        """The newest twenty requests are stored."""
        log, _ = telemetry()
        for number in range(1, 31):
            log.attempt_ended(attempt(number=number))
        self.assertEqual(
            list(range(11, 31)), [attempt.number for attempt in log.telemetry.recent]
        )

    def test_states(self) -> None:
        """A resource has one of five states."""
        log, _ = telemetry()
        log.read("peers", 1000, 0.4)
        for now, state in ((1000, "fresh"), (1045, "fresh"), (1046, "late")):
            self.assertEqual(state, log.freshness["peers"].state(now))
        log.fails("peers", 1060, 30)
        self.assertEqual("failing", log.freshness["peers"].state(1060))
        self.assertEqual("starting", log.freshness["groups"].state(1060))
        log.unsupported("groups", "no {resource}", 0.1)
        self.assertEqual("unsupported", log.freshness["groups"].state(9000))

    def test_failing_since(self) -> None:
        """`failing_since` is the time of the first failure in a row."""
        log, _ = telemetry()
        for at in (0, 30, 60):
            log.fails("peers", at, 30)
        self.assertEqual(0, log.freshness["peers"].failing_since)
        log.read("peers", 90, 0.4)
        self.assertIsNone(log.freshness["peers"].failing_since)
        log.fails("peers", 120, 30)
        self.assertEqual(120, log.freshness["peers"].failing_since)

    def test_summary(self) -> None:
        """The summary is one line."""
        log, _ = telemetry()
        self.assertEqual("peers starting", log.telemetry.summary(1000))
        log.read("peers", 1000, 0.44)
        self.assertEqual("peers fresh, 5 peers, 0.4 s", log.telemetry.summary(1001))
        self.assertEqual("peers late, 5 peers, 0.4 s", log.telemetry.summary(1100))
        log.fails("groups", 1001, 1)
        self.assertEqual(
            "peers fresh, 5 peers, 0.4 s, failing: groups", log.telemetry.summary(1001)
        )
        log.fails("peers", 1002, 1)
        self.assertEqual("peers failing: no answer", log.telemetry.summary(1003))

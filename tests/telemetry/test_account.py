"""The exporter's metrics of one account: their values and absence."""

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import NO_RECORDS
from api_exporter.netbird.resource_state import LastBody, NotRead
from api_exporter.ports import REASONS, Attempt, UpstreamError
from api_exporter.refresh.states import States
from api_exporter.refresh.transitions import Expired, Failed, Read, Unread
from api_exporter.telemetry.account import AccountTelemetry
from tests.parts import attempt

DOWN = UpstreamError("timeout", "no answer")


class Recorded(States):
    """The states of an account with its telemetry, and times from the test."""

    def __init__(self) -> None:
        super().__init__({"peers": 30.0, "groups": 300.0}, lambda *_: None)
        self.registry = CollectorRegistry()
        self.budget: float | None = None
        self.telemetry = AccountTelemetry(
            registry=self.registry,
            states=self,
            created=7,
            reasons=self.reasons,
            collectors=("peers", "routes"),
            budget=lambda: self.budget,
        )

    def read(self, name: str, at: float = 1000, seconds: float = 0.4) -> None:
        """Record a successful refresh with five records and a rejected one."""
        body = LastBody(
            digest=(), records=5, rejected=1, errors=(), recognized=NO_RECORDS
        )
        self.record(name, Read(body, seconds, at, at))

    def fails(self, name: str, at: float, seconds: float = 30) -> None:
        self.record(name, Failed(DOWN, seconds, at))

    def absent(self, name: str) -> None:
        self.record(name, Unread(NotRead.ABSENT, 0.1, 1000))

    def expire(self, name: str) -> None:
        self.record(name, Expired(300, peers_fail=False))

    def attempt_ended(self, attempt: Attempt) -> None:
        self.telemetry.count_attempt(attempt)
        self.record_attempt(attempt)


def failed(path: str, at: float) -> Attempt:
    return attempt(path, None, received=0, started=at, error=DOWN)


class AccountTelemetryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.states = Recorded()

    def up(self) -> float | None:
        return self.states.registry.get_sample_value("netbird_api_up")

    def value(self, name: str, **labels: str) -> float | None:
        return self.states.registry.get_sample_value(f"api_exporter_{name}", labels)

    def assert_values(self, resource: str, **expected: float | None) -> None:
        found = {name: self.value(name, resource=resource) for name in expected}
        self.assertEqual(expected, found)

    def test_at_the_start(self) -> None:
        """Counters start at 0; gauges are absent until their value is known."""
        gauges = ("up", "supported", "records", "rejected_records")
        absent: dict[str, None] = dict.fromkeys(f"resource_{name}" for name in gauges)
        for name in ("peers", "groups"):
            counts = {"refreshes_total": 0, "refresh_failures_total": 0}
            self.assert_values(name, **counts, **absent)
        for reason in REASONS:
            name = "refresh_failure_reasons_total"
            self.assertEqual(0, self.value(name, reason=reason))
        self.assertIsNone(self.up())
        self.assert_values("groups", resource_refresh_interval_seconds=300)

    def test_success(self) -> None:
        """A successful refresh sets all gauges of its resource, and `up` for peers."""
        self.states.read("peers", 1000.5, 0.4)
        self.assertEqual(1, self.up())
        self.assert_values(
            "peers",
            resource_up=1,
            resource_supported=1,
            resource_records=5,
            resource_rejected_records=1,
            resource_last_success_timestamp_seconds=1000.5,
            refresh_duration_seconds=0.4,
            refreshes_total=1,
            refresh_failures_total=0,
        )

    def test_failure(self) -> None:
        """A failed refresh is counted once by resource and once by reason."""
        self.states.read("peers", 1000, 0.4)
        self.states.fails("peers", 1030, 30)
        self.assertEqual(0, self.up())
        self.assert_values(
            "peers",
            resource_up=0,
            refreshes_total=2,
            refresh_failures_total=1,
            resource_last_success_timestamp_seconds=1000,
        )
        name = "refresh_failure_reasons_total"
        self.assertEqual(1, self.value(name, reason="timeout"))

    def test_unsupported(self) -> None:
        """A missing resource is neither up nor down, until it fails."""
        self.states.fails("groups", 1000)
        self.states.absent("groups")
        self.assertEqual(0, self.states["groups"].failures)
        self.assert_values(
            "groups", resource_up=None, resource_supported=0, refresh_failures_total=1
        )
        self.states.fails("groups", 1100)
        self.assertEqual("failing", self.states["groups"].word(1100))
        self.assert_values(
            "groups", resource_up=0, resource_supported=0, refresh_failures_total=2
        )

    def test_withdrawn(self) -> None:
        """A resource with expired metrics is not up until the next success."""
        for name in ("peers", "groups"):
            self.states.read(name, 1000, 0.4)
            self.states.expire(name)
            self.assertEqual("expired", self.states[name].word(1000))
            self.assert_values(name, resource_up=0)
        self.assertEqual(0, self.up())
        self.states.read("peers", 2000, 0.4)
        self.assertEqual(1, self.up())

    def test_failed_attempt(self) -> None:
        """A failed request for the peers sets `up` to 0 before the refresh ends."""
        self.states.attempt_ended(failed("api/peers", 900))
        self.assertEqual(0, self.up())
        self.states.read("peers", 1000, 0.4)
        self.states.attempt_ended(failed("api/groups", 1030))
        self.assertEqual(1, self.up())
        self.states.attempt_ended(failed("api/peers", 1030))
        self.assertEqual(0, self.up())
        self.assert_values("peers", refresh_failures_total=0)
        # Its body has yet to be decoded.
        self.states.attempt_ended(attempt("api/peers"))
        self.assertEqual(0, self.up())
        self.states.fails("peers", 1090, 30)
        self.assertEqual(1030.3, self.states["peers"].failing_since)
        self.states.read("peers", 1100, 0.4)
        self.assertEqual(1, self.up())

    def test_changed(self) -> None:
        """`changed` is called exactly when `up` changes."""
        seen: list[float | None] = []
        self.states.on_up_changed = lambda: seen.append(self.up())
        for at in (1, 2):
            self.states.attempt_ended(failed("api/peers", at))
            self.states.fails("peers", at, 30)
            self.states.fails("groups", at, 30)
        for at in (3, 4):
            self.states.read("peers", at, 0.4)
        self.states.expire("peers")
        self.assertEqual([0, 1, 0], seen)

    def test_changed_once(self) -> None:
        """`changed` is called after all values of the first refresh are set."""
        for end, expected in (
            (Recorded.read, "peers fresh, 5 peers, 1.0 s"),
            (Recorded.fails, "peers failing: no answer"),
        ):
            self.setUp()
            seen: list[str] = []
            telemetry = self.states.telemetry
            self.states.on_up_changed = lambda t=telemetry, s=seen: s.append(
                t.summary(1)
            )  # type: ignore[misc]
            end(self.states, "peers", 1, 1)
            self.assertEqual([expected], seen)

    def test_collectors(self) -> None:
        """Bugs of enabled collectors are counted; an unknown budget is absent."""
        self.states.telemetry.collector_failed("peers")
        for collector, expected in (("peers", 1), ("routes", 0), ("users", None)):
            found = self.value("collector_failures_total", collector=collector)
            self.assertEqual(expected, found, collector)
        for known in (None, 4.5):
            self.states.budget = known
            self.assertEqual(known, self.value("request_budget_per_minute"))

    def test_attempts(self) -> None:
        """Requests are counted by status, invalid ones together; retries also apart."""
        for status in (None, 200, -1, 0, 99, 600, 10**9):
            number = 1 + (status == 200)
            error = DOWN if status is None else None
            self.states.attempt_ended(
                attempt(status=status, number=number, seconds=0.5, error=error)
            )
            self.assertEqual(status is not None, self.states.telemetry.reachable)
        for code, count in (("none", 1), ("200", 1), ("other", 5)):
            found = self.value("upstream_requests_total", code=code)
            self.assertEqual(count, found, code)
        for name, expected in (
            ("retries_total", 1),
            ("received_bytes_total", 70),
            ("request_duration_seconds_count", 7),
            ("request_duration_seconds_sum", 3.5),
        ):
            self.assertEqual(expected, self.value(f"upstream_{name}"), name)

    def test_proxy_login(self) -> None:
        """A proxy that requires a login does not show that the API is reachable."""
        error = UpstreamError("proxy_auth", "407: a proxy requires a login")
        self.states.attempt_ended(attempt(status=407, error=error))
        self.assertIs(False, self.states.telemetry.reachable)

    def test_summary(self) -> None:
        """The summary is one line."""
        summary = self.states.telemetry.summary
        self.assertEqual("peers starting", summary(1000))
        self.states.read("peers", 1000, 0.44)
        self.assertEqual("peers fresh, 5 peers, 0.4 s", summary(1001))
        self.assertEqual("peers late, 5 peers, 0.4 s", summary(1100))
        self.states.fails("groups", 1001, 1)
        self.assertEqual("peers fresh, 5 peers, 0.4 s, failing: groups", summary(1001))
        self.states.read("groups", 1001)
        self.states.expire("groups")
        self.assertEqual("peers fresh, 5 peers, 0.4 s", summary(1001))
        self.states.fails("peers", 1002, 1)
        self.assertEqual("peers failing: no answer", summary(1003))

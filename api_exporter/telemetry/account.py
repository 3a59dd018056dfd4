"""Metrics of one account: how each refresh went, and every request for it.

The one place that counts and publishes. Gauges of a resource are made afresh, for every
page, from what is known of it; only counters and histograms live on.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Histogram

from api_exporter.netbird.resources import BY_NAME, UP
from api_exporter.plurals import counted
from api_exporter.ports import REASONS, Attempt, UpstreamError
from api_exporter.telemetry.freshness import Freshness
from api_exporter.telemetry.gauges import CallbackMetric, Value, resource_gauges

RECENT = 20
"""Requests on the wire that are remembered."""


_WELL: Mapping[str, object] = {"error": None, "failures": 0, "failing_since": None}
"""Of a refresh that is no failure."""


class AttemptTelemetry:
    """Counts requests on the wire."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter[str]()
        self._retries = self._received = 0
        _publish(
            registry,
            "api_exporter_upstream_requests",
            "Number of requests to the NetBird API by HTTP status (none = no response,"
            " other = invalid status)",
            lambda: self._requests,
            "code",
        )
        self._seconds = Histogram(
            "api_exporter_upstream_request_duration_seconds",
            "Duration of a request to the NetBird API, including the body, in seconds",
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        _publish(
            registry,
            "api_exporter_upstream_retries",
            "Number of retries of requests to the NetBird API",
            lambda: self._retries,
        )
        _publish(
            registry,
            "api_exporter_upstream_received_bytes",
            "Number of bytes received from the NetBird API in bodies, as sent:"
            " compressed bodies count compressed",
            lambda: self._received,
        )

    def count(self, attempt: Attempt) -> None:
        self._requests[_code(attempt.status)] += 1
        self._seconds.observe(attempt.seconds)
        self._received += attempt.received
        if attempt.number > 1:
            self._retries += 1


class AccountTelemetry:
    """Instruments of an account, on a registry of their own.

    Args:
        periods: seconds between refreshes by resource, for all that are enabled.
        collectors: the names of those that are enabled.
        budget: requests a minute that we allow ourselves; None where nothing is known.

    Attributes:
        reachable: whether the newest request was answered; None before the first.
        recent: the newest requests, the newest last.
        changed: called when `netbird_api_up` has changed.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        periods: Mapping[str, float],
        collectors: Iterable[str] = (),
        budget: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.standings = {n: Freshness(period=p) for n, p in periods.items()}
        self.reachable: bool | None = None
        self.recent: deque[Attempt] = deque(maxlen=RECENT)
        self.registry = registry
        self.changed: Callable[[], object] = lambda: None
        resource_gauges(registry, self.standings, budget)
        self._refreshes = dict.fromkeys(periods, 0)
        self._failures = dict.fromkeys(periods, 0)
        self._reasons: dict[str, int] = dict.fromkeys(REASONS, 0)
        self._collector_failures = dict.fromkeys(collectors, 0)
        _publish(
            registry,
            "api_exporter_refreshes",
            "Number of finished refreshes of the resource, including failed refreshes",
            lambda: self._refreshes,
            "resource",
        )
        _publish(
            registry,
            "api_exporter_refresh_failures",
            "Number of failed refreshes of the resource",
            lambda: self._failures,
            "resource",
        )
        _publish(
            registry,
            "api_exporter_refresh_failure_reasons",
            "Number of failed refreshes by reason",
            lambda: self._reasons,
            "reason",
        )
        _publish(
            registry,
            "api_exporter_collector_failures",
            "Number of times that a metric family of the collector could not be made"
            " because of a bug",
            lambda: self._collector_failures,
            "collector",
        )
        self._attempts = AttemptTelemetry(registry)

    def summary(self, now: float) -> str:
        """Our state in one line, such as `peers fresh, 214 peers, 0.4 s`."""
        peers = self.standings[UP]
        state = peers.state(now)
        if peers.error is not None:
            return f"peers {state}: {peers.error}"
        if peers.last_success is None:
            return f"peers {state}"
        failing = [name for name, s in self.standings.items() if s.up is False]
        others = f", failing: {', '.join(failing)}" if failing else ""
        records = counted(peers.records, "peer")
        return f"peers {state}, {records}, {peers.seconds:.1f} s{others}"

    def attempted(self, attempt: Attempt) -> None:
        """Count one request on the wire; any answer to it proves an upstream there.

        A failed one for the peers makes them failing at once: it may be tried again for
        longer than anybody should be told that all is well.
        """
        self.reachable = attempt.status is not None
        self.recent.append(attempt)
        self._attempts.count(attempt)
        if attempt.path == BY_NAME[UP].path and attempt.reason is not None:
            before = self.standings[UP]
            self._update(
                UP,
                error=UpstreamError(
                    attempt.reason, attempt.error, request_id=attempt.request_id
                ),
                failing_since=before.failing_since
                if before.error is not None
                else attempt.started + attempt.seconds,
            )

    def succeeded(
        self, resource: str, *, records: int, rejected: int, seconds: float, at: float
    ) -> None:
        """A refresh has ended well, at a time in seconds since the epoch."""
        self._ended(
            resource,
            seconds,
            at,
            **_WELL,
            withdrawn=False,
            supported=True,
            restricted=False,
            last_success=at,
            records=records,
            rejected=rejected,
        )

    def failed(
        self, resource: str, error: UpstreamError, *, seconds: float, at: float
    ) -> None:
        self._failures[resource] += 1
        self._reasons[error.reason] += 1
        before = self.standings[resource]
        self._ended(
            resource,
            seconds,
            at,
            error=error,
            failures=before.failures + 1,
            failing_since=at if before.error is None else before.failing_since,
        )

    def unsupported(
        self, resource: str, *, seconds: float, at: float, restricted: bool = False
    ) -> None:
        """The upstream does not have the path, which is no failure."""
        self._ended(
            resource, seconds, at, **_WELL, supported=False, restricted=restricted
        )

    def sleep(self, resource: str) -> None:
        """There is nothing to ask for: nothing is told of it."""
        if self.standings.pop(resource, None) is not None:
            del self._refreshes[resource]
            del self._failures[resource]

    def forget(self, resource: str) -> None:
        """What was known of it has gone: it is as before its first refresh."""
        self.standings[resource] = Freshness(period=self.standings[resource].period)

    def wake(self, resource: str, period: float) -> None:
        if resource not in self.standings:
            self.standings[resource] = Freshness(period=period)
            self._refreshes[resource] = 0
            self._failures[resource] = 0

    def paced(self, resource: str, period: float) -> None:
        """So many seconds are between its refreshes, as it has turned out."""
        self._update(resource, period=period)

    def collector_failed(self, collector: str) -> None:
        self._collector_failures[collector] += 1

    def withdrawn(self, resource: str) -> None:
        self._update(resource, withdrawn=True)

    def _ended(
        self, resource: str, seconds: float, at: float, **changes: object
    ) -> None:
        self._refreshes[resource] += 1
        self._update(resource, ended=at, seconds=seconds, **changes)

    def _update(self, resource: str, **changes: object) -> None:
        before = self.standings[resource]
        self.standings[resource] = after = replace(before, **changes)
        if resource == UP and after.up is not before.up:
            self.changed()


def _publish(
    registry: CollectorRegistry,
    name: str,
    words: str,
    read: Callable[[], Value],
    label: str = "",
) -> None:
    """Plain numbers as a counter: prometheus_client's own take a kilobyte each."""
    CallbackMetric(registry, name, words, read, label=label, kind="counter")


def _code(status: int | None) -> str:
    """A label's value, of which there are not too many."""
    if status is None:
        return "none"
    return str(status) if 100 <= status < 600 else "other"


def summary(accounts: Collection[AccountTelemetry]) -> str:
    """Their state in one line, such as `48 of 50 accounts up`."""
    up = sum(telemetry.standings[UP].up is True for telemetry in accounts)
    return f"{up} of {counted(len(accounts), 'account')} up"

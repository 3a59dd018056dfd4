"""What the exporter knows of itself: how each refresh went, and our own instruments.

The one place that counts and publishes. Gauges of a resource are made afresh, for every
page, from what is known of it; only counters and histograms live on.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping

from msgspec.structs import replace
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    exposition,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from twisted.python.threadpool import ThreadPool

import twisted
from api_exporter.netbird.resources import UP
from api_exporter.ports import REASONS, Attempt, UpstreamError
from api_exporter.telemetry.standing import Standing
from api_exporter.version import Build

RECENT = 20
"""Requests on the wire that are remembered."""


class Telemetry:
    """Our own metrics, on a registry of their own.

    Args:
        periods: seconds between refreshes by resource, for all that are enabled.

    Attributes:
        reachable: whether the newest request was answered; None before the first.
        recent: the newest requests, the newest last.
    """

    def __init__(
        self, *, registry: CollectorRegistry, build: Build, periods: Mapping[str, float]
    ) -> None:
        disable_created_metrics()  # `_created` lines double the page and tell nothing
        self.standings = {n: Standing(period=p) for n, p in periods.items()}
        self.reachable: bool | None = None
        self.recent: deque[Attempt] = deque(maxlen=RECENT)
        self._registry = registry
        registry.register(_Gauges(self.standings))
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        PlatformCollector(registry=registry)
        Gauge(
            "api_exporter_build_info",
            "The running build. Always 1.",
            ["version", "commit", "built", "python", "twisted"],
            registry=registry,
        ).labels(
            build.version,
            build.commit,
            build.built,
            ".".join(map(str, sys.version_info[:3])),
            twisted.__version__,
        ).set(1)
        self._refreshes = Counter(
            "api_exporter_refreshes",
            "Refreshes that have ended, failed ones included.",
            ["resource"],
            registry=registry,
        )
        self._failures = Counter(
            "api_exporter_refresh_failures",
            "Refreshes that have failed.",
            ["resource"],
            registry=registry,
        )
        self._reasons = Counter(
            "api_exporter_refresh_failure_reasons",
            "Refreshes that have failed, by reason.",
            ["reason"],
            registry=registry,
        )
        for name in periods:
            self._refreshes.labels(name)
            self._failures.labels(name)
        for reason in REASONS:
            self._reasons.labels(reason)
        self._requests = Counter(
            "api_exporter_upstream_requests",
            "Attempts on the wire by HTTP status, none where no answer came.",
            ["code"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            "api_exporter_upstream_request_duration_seconds",
            "Duration of one attempt, body included.",
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self._retries = Counter(
            "api_exporter_upstream_retries",
            "Attempts that were not the first of their refresh.",
            registry=registry,
        )
        self._received = Counter(
            "api_exporter_upstream_received_bytes",
            "Decompressed bytes of bodies received.",
            registry=registry,
        )
        self.scrapes_in_flight = Gauge(
            "api_exporter_scrapes_in_flight",
            "Scrapes that are being answered.",
            registry=registry,
        )
        self.reactor_lag = Histogram(
            "api_exporter_reactor_lag_seconds",
            "How late a timer of the event loop fires.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 5),
            registry=registry,
        )

    def watch_threads(self, pool: ThreadPool) -> None:
        """Tell how many threads of the event loop's pool there are, and are busy."""
        Gauge(
            "api_exporter_reactor_threads",
            "Threads of the event loop's pool.",
            registry=self._registry,
        ).set_function(lambda: len(pool.threads))
        Gauge(
            "api_exporter_reactor_threads_in_use",
            "Threads of the event loop's pool that are at work.",
            registry=self._registry,
        ).set_function(lambda: len(pool.working))

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
        return f"peers {state}, {peers.records} peers, {peers.seconds:.1f} s{others}"

    def attempted(self, attempt: Attempt) -> None:
        """Count one request on the wire; any answer to it proves an upstream there."""
        self.reachable = attempt.status is not None
        self.recent.append(attempt)
        status = "none" if attempt.status is None else str(attempt.status)
        self._requests.labels(status).inc()
        self._request_seconds.observe(attempt.seconds)
        self._received.inc(attempt.received)
        if attempt.number > 1:
            self._retries.inc()

    def succeeded(
        self, resource: str, *, records: int, rejected: int, seconds: float, at: float
    ) -> None:
        """A refresh has ended well, at a time in seconds since the epoch."""
        self._ended(resource, seconds, at)
        self._update(
            resource,
            error=None,
            failures=0,
            failing_since=None,
            supported=True,
            last_success=at,
            records=records,
            rejected=rejected,
        )

    def failed(
        self, resource: str, error: UpstreamError, *, seconds: float, at: float
    ) -> None:
        """A refresh has failed."""
        self._ended(resource, seconds, at)
        self._failures.labels(resource).inc()
        self._reasons.labels(error.reason).inc()
        before = self.standings[resource]
        self._update(
            resource,
            error=error,
            failures=before.failures + 1,
            failing_since=before.failing_since if before.failures else at,
        )

    def unsupported(self, resource: str, *, seconds: float, at: float) -> None:
        """The upstream does not have the path, which is no failure."""
        self._ended(resource, seconds, at)
        self._update(
            resource, error=None, failures=0, failing_since=None, supported=False
        )

    def text(self, *, in_openmetrics: bool) -> bytes:
        """All of it in one of the formats; OpenMetrics ends with its `# EOF`."""
        writer = openmetrics if in_openmetrics else exposition
        text: bytes = writer.generate_latest(self._registry)
        return text

    def _ended(self, resource: str, seconds: float, at: float) -> None:
        self._refreshes.labels(resource).inc()
        self._update(resource, ended=at, seconds=seconds)

    def _update(self, resource: str, **changes: object) -> None:
        self.standings[resource] = replace(self.standings[resource], **changes)


class _Gauges(Collector):
    """The gauges of all resources, absent until there is something to tell."""

    def __init__(self, standings: Mapping[str, Standing]) -> None:
        self._standings = standings

    def collect(self) -> Iterator[Metric]:
        up = self._standings[UP].up
        if up is not None:
            yield GaugeMetricFamily(
                "netbird_api_up",
                "Whether the newest refresh of the peers succeeded, retries included.",
                value=up,
            )
        for name, words, value in _GAUGES:
            family = GaugeMetricFamily(name, words, labels=["resource"])
            for resource, standing in self._standings.items():
                known = value(standing)
                if known is not None:
                    family.add_metric([resource], known)
            yield family


_GAUGES = (
    (
        "api_exporter_resource_up",
        "Whether the newest refresh succeeded.",
        lambda s: s.up,
    ),
    (
        "api_exporter_resource_supported",
        "Whether this upstream has the resource for this token.",
        lambda s: s.supported,
    ),
    (
        "api_exporter_resource_records",
        "Records in the newest good answer.",
        lambda s: s.last_success and s.records,
    ),
    (
        "api_exporter_resource_rejected_records",
        "Records of the newest good answer that could not be decoded and are left out.",
        lambda s: s.last_success and s.rejected,
    ),
    (
        "api_exporter_resource_last_success_timestamp_seconds",
        "When the resource was last refreshed; its metrics are as old as that.",
        lambda s: s.last_success,
    ),
    (
        "api_exporter_resource_refresh_interval_seconds",
        "Configured time between two refreshes.",
        lambda s: s.period,
    ),
    (
        "api_exporter_refresh_duration_seconds",
        "Duration of the newest refresh: fetch, decode and render.",
        lambda s: s.seconds if s.ended is not None else None,
    ),
)

"""Metrics of the process: build, threads, lag, scrapes, refused requests."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.threadpool import ThreadPool

import twisted
from api_exporter.netbird.resources import PEERS
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import OwnFamily, OwnMetrics
from api_exporter.version import Build

LAG_INTERVAL = 5.0
"""Seconds between two measurements. An idle process wakes mostly for these."""


class LagMeter(Service):
    """Measures every five seconds by how many seconds a timer is late."""

    def __init__(self, clock: IReactorTime, observe: Callable[[float], None]) -> None:
        self._clock = clock
        self._observe = observe
        self._timer: IDelayedCall | None = None

    def startService(self) -> None:
        super().startService()
        self._start_timer()

    def stopService(self) -> None:
        super().stopService()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self) -> None:
        due_at = self._clock.seconds() + LAG_INTERVAL
        self._timer = self._clock.callLater(LAG_INTERVAL, self._on_timer, due_at)

    def _on_timer(self, due_at: float) -> None:
        self._observe(max(0.0, self._clock.seconds() - due_at))
        self._start_timer()


class ProcessTelemetry:
    """The metrics of the process, in a registry of their own.

    Args:
        dropped: returns the number of dropped log lines since the time `created`.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        build: Build,
        threads: Collection[ThreadPool],
        dropped: Callable[[], int],
        created: float,
    ) -> None:
        self.registry = registry
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        PlatformCollector(registry=registry)
        OwnMetrics(registry, *_families(build, threads, dropped, created))
        self.scrapes_in_flight = Gauge(
            "api_exporter_scrapes_in_flight",
            "Number of scrapes in progress",
            registry=registry,
        )
        self.target_lists_aborted = Counter(
            "api_exporter_target_lists_aborted",
            "Number of lists of service discovery that were aborted because the client"
            " did not read while others waited",
            registry=registry,
        )
        self.reactor_lag = Histogram(
            "api_exporter_reactor_lag_seconds",
            "Delay of a timer of the event loop in seconds, measured every 5 seconds",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 5),
            registry=registry,
        )


def _families(
    build: Build,
    threads: Collection[ThreadPool],
    dropped: Callable[[], int],
    created: float,
) -> Iterator[OwnFamily]:
    python = ".".join(map(str, sys.version_info[:3]))
    this = (build.version, build.commit, build.built, python, twisted.__version__)
    one: Mapping[tuple[str, ...], float] = {this: 1}
    yield OwnFamily(
        "api_exporter_build_info",
        "Version and build of the running exporter (always 1)",
        lambda: one,
        ("version", "commit", "built", "python", "twisted"),
    )
    yield OwnFamily(
        "api_exporter_reactor_threads",
        "Number of threads in the thread pools of the event loop",
        lambda: sum(len(pool.threads) for pool in threads),
    )
    yield OwnFamily(
        "api_exporter_reactor_threads_in_use",
        "Number of busy threads in the thread pools of the event loop",
        lambda: sum(len(pool.working) for pool in threads),
    )
    yield OwnFamily(
        "api_exporter_log_lines_dropped",
        "Number of log lines dropped because the reader of the log was too slow",
        dropped,
        created=created,
    )


def register_access_metrics(
    registry: CollectorRegistry,
    *,
    is_valid: Callable[[], bool],
    loaded_at: Callable[[], float],
) -> Callable[[], None]:
    """Register the metrics of authentication; return the counter of refusals."""
    refused = Counter(
        "api_exporter_web_unauthorized",
        "Number of requests and connections refused because authentication failed",
        registry=registry,
    )
    OwnMetrics(
        registry,
        OwnFamily(
            "api_exporter_web_config_last_reload_successful",
            "Whether the last reload of WEB_CONFIG_FILE and WEB_BEARER_TOKENS_FILE"
            " succeeded (1 = yes, 0 = no)",
            is_valid,
        ),
        OwnFamily(
            "api_exporter_web_config_last_reload_success_timestamp_seconds",
            "Time of the last successful load of WEB_CONFIG_FILE or"
            " WEB_BEARER_TOKENS_FILE, in seconds since 1970",
            loaded_at,
        ),
    )
    return refused.inc


def register_account_gauges(
    registry: CollectorRegistry, accounts: Callable[[], Mapping[str, AccountTelemetry]]
) -> None:
    def up() -> dict[str, float]:
        ups = ((name, account.states[PEERS].up) for name, account in accounts().items())
        return {name: up for name, up in ups if up is not None}

    OwnMetrics(
        registry,
        OwnFamily(
            "api_exporter_accounts",
            "Number of accounts that the process serves",
            lambda: len(accounts()),
        ),
        OwnFamily(
            "api_exporter_account_up",
            "Whether the last attempt to read the account's peers succeeded and their"
            " metrics have not expired (1 = yes, 0 = no)",
            up,
            ("account",),
        ),
    )

"""What is known of this process: its build, threads, lag and scrapes."""

import sys
from collections.abc import Callable, Collection, Iterator

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from twisted.python.threadpool import ThreadPool

import twisted
from api_exporter.version import Build


class ProcessTelemetry:
    """Instruments of the process, on a registry of their own.

    Args:
        threads: the event loop's pools.
        dropped: how many log lines nobody took.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        build: Build,
        threads: Collection[ThreadPool],
        dropped: Callable[[], int],
    ) -> None:
        self.registry = registry
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
        self.scrapes_in_flight = Gauge(
            "api_exporter_scrapes_in_flight",
            "Scrapes that are being answered.",
            registry=registry,
        )
        self.reactor_lag = Histogram(
            "api_exporter_reactor_lag_seconds",
            "How late a timer of the event loop fires, looked at once a second.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 5),
            registry=registry,
        )
        Gauge(
            "api_exporter_reactor_threads",
            "Threads of the event loop's pools.",
            registry=registry,
        ).set_function(lambda: sum(len(pool.threads) for pool in threads))
        Gauge(
            "api_exporter_reactor_threads_in_use",
            "Threads of the event loop's pools that are at work.",
            registry=registry,
        ).set_function(lambda: sum(len(pool.working) for pool in threads))
        registry.register(_Dropped(dropped))


class _Dropped(Collector):
    def __init__(self, dropped: Callable[[], int]) -> None:
        self._dropped = dropped

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "api_exporter_log_lines_dropped",
            "Log lines that nobody took in time.",
            value=self._dropped(),
        )

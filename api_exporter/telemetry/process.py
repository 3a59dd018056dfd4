"""What is known of this process: its build, threads, lag and scrapes."""

import sys

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from twisted.python.threadpool import ThreadPool

import twisted
from api_exporter.version import Build


class ProcessTelemetry:
    """Instruments of the process, on a registry of their own.

    Args:
        threads: the event loop's pool.
    """

    def __init__(
        self, *, registry: CollectorRegistry, build: Build, threads: ThreadPool
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
            "How late a timer of the event loop fires.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 5),
            registry=registry,
        )
        Gauge(
            "api_exporter_reactor_threads",
            "Threads of the event loop's pool.",
            registry=registry,
        ).set_function(lambda: len(threads.threads))
        Gauge(
            "api_exporter_reactor_threads_in_use",
            "Threads of the event loop's pool that are at work.",
            registry=registry,
        ).set_function(lambda: len(threads.working))

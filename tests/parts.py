"""Defaults for the parts of networks and pages."""

from collections.abc import Callable, Container, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.python.threadpool import ThreadPool
from twisted.web.resource import IResource

from api_exporter.clocks import Clocks
from api_exporter.collectors.collector import EVERYTHING, MetricFilter
from api_exporter.ports import Attempt, Compute, Now, UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.request_plans import RequestPlan
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.environment import read_settings
from api_exporter.subjects.table import selection
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import Build
from api_exporter.web.context import SiteContext
from tests.token_bucket import TokenBucket

P = ParamSpec("P")
T = TypeVar("T")


def process_telemetry(version: str = "0") -> ProcessTelemetry:
    """Return the telemetry of a process whose event loop has no threads."""
    return ProcessTelemetry(
        registry=CollectorRegistry(),
        build=Build(version=version),
        threads=[ThreadPool(0, 1)],
        dropped=lambda: 0,
        created=0,
    )


def clocks_of(clock: Clock, now: Now | None = None, account: str = "") -> Clocks:
    """Return clocks without jitter; `now` is the clock's time if None."""
    return Clocks(clock, now or clock.seconds, lambda: 0.5, account)


def attempt(path: str = "", status: int | None = 200, **fields: Any) -> Attempt:
    """Return a request with other fields than those of a usual one."""
    usual = {"number": 1, "started": 0.0, "received": 10, "seconds": 0.3}
    return Attempt(path=path, status=status, **{**usual, "error": None, **fields})


def account_settings(**fields: Any) -> AccountSettings:
    """Return the settings of an account with other fields than the defaults."""
    environ = {"UPSTREAM_API_URL": "https://netbird.example", "UPSTREAM_API_TOKEN": "t"}
    return replace(read_settings(environ).accounts[""], **fields)


def limiter(per_minute: float, burst: int) -> TokenBucket:
    return TokenBucket(60 / per_minute, burst)


CURRENT_USER = "api/users/current"

SERVICE_USER = UpstreamError("forbidden", "403: permission denied")
"""The answer to a service user on that path."""


def request_plan(
    collectors: Container[str],
    intervals: Mapping[str, float] | None = None,
    *,
    metric_filter: MetricFilter = EVERYTHING,
    budget: Budget | None = None,
) -> RequestPlan:
    """Return the request plan of an account with these collectors and its own token."""
    selected = selection(collectors, intervals or {}, metric_filter=metric_filter)
    return RequestPlan(Budget() if budget is None else budget, selected, "", "")


class DelayedCompute:
    """Runs computations when the test says so.

    Attributes:
        waiting: computations that have not run.
    """

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        done: Deferred[T] = Deferred()

        def compute() -> None:
            if not done.called:
                maybeDeferred(function, *args, **kwargs).chainDeferred(done)

        self.waiting.append(compute)
        return done

    def go(self) -> None:
        waiting, self.waiting = self.waiting, []
        for compute in waiting:
            compute()


def site_context(
    clock: Clock,
    *,
    version: str = "0",
    metrics_path: str = "/metrics",
    simulated: bool = False,
    profiles: Mapping[str, IResource] = MappingProxyType({}),
    now: Callable[[], float] | None = None,
    compute: Compute = compute_at_once,
) -> SiteContext:
    """Return the context of a site whose process has just started."""
    return SiteContext(
        process=process_telemetry(),
        build=Build(version=version),
        metrics_path=metrics_path,
        runbooks="runbooks",
        simulated=simulated,
        compute=compute,
        profiles=profiles,
        uptime=clock.seconds,
        clock=clock,
        now=clock.seconds if now is None else now,
    )

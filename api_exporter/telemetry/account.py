"""Metrics of one account: its refreshes, and its requests to the NetBird API.

The metrics of a resource are computed from its state at each scrape; only requests and
collectors have counters of their own.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from prometheus_client import CollectorRegistry, Histogram

from api_exporter.formatting import with_noun
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import PEERS
from api_exporter.ports import Attempt
from api_exporter.telemetry.gauges import (
    OwnFamily,
    OwnMetrics,
    register_resource_gauges,
)

MAX_RECENT_REQUESTS = 20
"""Number of newest requests that the status page shows."""


class AccountTelemetry:
    """The metrics of an account, in a registry of their own.

    Args:
        states: by resource, without dormant resources.
        created: the time from which its counters count, in seconds since 1970.
        budget: returns the allowed requests a minute, or None while unknown.

    Attributes:
        reachable: whether the newest request got a response; None before the first.
        recent: the newest requests, the newest last.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        states: Mapping[str, ResourceState],
        created: float,
        reasons: Mapping[str, int] = MappingProxyType({}),
        collectors: Iterable[str] = (),
        budget: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.states, self._created = states, created
        self.reachable: bool | None = None
        self.recent: deque[Attempt] = deque(maxlen=MAX_RECENT_REQUESTS)
        self.registry = registry
        register_resource_gauges(registry, states, budget)
        self._collector_failures = dict.fromkeys(collectors, 0)
        self._requests = Counter[str]()
        self._retries = self._received = 0
        OwnMetrics(registry, *self._refreshes(reasons))
        self._seconds = Histogram(
            "api_exporter_upstream_request_duration_seconds",
            "Duration of a request to the NetBird API, including the body, in seconds",
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        OwnMetrics(registry, *self._attempts())

    def _refreshes(self, reasons: Mapping[str, int]) -> Iterator[OwnFamily]:
        states, counter = self.states, partial(OwnFamily, created=self._created)
        yield counter(
            "api_exporter_refreshes",
            "Number of finished refreshes of the resource, including failed refreshes",
            lambda: {name: one.refreshes for name, one in states.items()},
            ("resource",),
        )
        yield counter(
            "api_exporter_refresh_failures",
            "Number of failed refreshes of the resource",
            lambda: {n: one.failed_refreshes for n, one in states.items()},
            ("resource",),
        )
        yield counter(
            "api_exporter_refresh_failure_reasons",
            "Number of failed refreshes by reason",
            lambda: reasons,
            ("reason",),
        )
        yield counter(
            "api_exporter_collector_failures",
            "Number of times that a metric family of the collector could not be"
            " made because of a bug",
            lambda: self._collector_failures,
            ("collector",),
        )

    def _attempts(self) -> Iterator[OwnFamily]:
        counter = partial(OwnFamily, created=self._created)
        yield counter(
            "api_exporter_upstream_requests",
            "Number of requests to the NetBird API by HTTP status (none = no"
            " response, other = invalid status)",
            lambda: self._requests,
            ("code",),
        )
        yield counter(
            "api_exporter_upstream_retries",
            "Number of retries of requests to the NetBird API",
            lambda: self._retries,
        )
        yield counter(
            "api_exporter_upstream_received_bytes",
            "Number of bytes received from the NetBird API in bodies, as sent:"
            " compressed bodies count compressed",
            lambda: self._received,
        )

    def summary(self, now: float) -> str:
        """Return the account's state, such as `peers fresh, 214 peers, 0.4 s`."""
        peers = self.states[PEERS]
        state = peers.word(now)
        if peers.error is not None:
            return f"peers {state}: {peers.error}"
        if peers.last_success is None:
            return f"peers {state}"
        failing = [n for n, s in self.states.items() if s.word(now) == "failing"]
        others = f", failing: {', '.join(failing)}" if failing else ""
        records = with_noun(peers.records, "peer")
        return f"peers {state}, {records}, {peers.seconds:.1f} s{others}"

    def count_attempt(self, attempt: Attempt) -> None:
        """Count a request; any response shows that the NetBird API is reachable.

        That of a proxy that requires a login does not.
        """
        if attempt.status is None and attempt.error is None:  # it was cancelled
            return
        is_proxy = attempt.error is not None and attempt.error.reason == "proxy_auth"
        self.reachable = attempt.status is not None and not is_proxy
        self.recent.append(attempt)
        self._requests[_code_label(attempt.status)] += 1
        self._seconds.observe(attempt.seconds)
        self._received += attempt.received
        self._retries += attempt.number > 1

    def collector_failed(self, collector: str) -> None:
        self._collector_failures[collector] += 1


def _code_label(status: int | None) -> str:
    if status is None:
        return "none"
    return str(status) if 100 <= status < 600 else "other"


def accounts_summary(accounts: Collection[AccountTelemetry]) -> str:
    """Return the state of several accounts, such as `48 of 50 accounts up`."""
    up = sum(telemetry.states[PEERS].up is True for telemetry in accounts)
    return f"{up} of {with_noun(len(accounts), 'account')} up"

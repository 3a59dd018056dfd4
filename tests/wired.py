"""The parts between `fetch` and the page, wired as an account wires them."""

from collections.abc import Callable, Container, Mapping
from math import inf

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from api_exporter.attention.watch import Attention
from api_exporter.collectors.metric_filter import EVERYTHING, MetricFilter
from api_exporter.collectors.selection import selection
from api_exporter.exposition.pages import Pages, piece
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.ports import Attempt, Fetch
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.looking import Looking
from api_exporter.refresh.refresher import Refresher
from api_exporter.refresh.rounds import Rounds
from api_exporter.refresh.slices import Slicer
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import attention, page_size
from api_exporter.telemetry.history import History
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import Build


def process_telemetry(version: str = "0") -> ProcessTelemetry:
    """Of a process whose event loop has no threads."""
    return ProcessTelemetry(
        registry=CollectorRegistry(),
        build=Build(version=version),
        threads=[ThreadPool(0, 1)],
        dropped=lambda: 0,
    )


class Wired:
    """A Refresher and everything that it works on: an account without a client.

    Args:
        intervals: seconds between refreshes of resources, where not the usual ones.
        budget: of its token, where others have that, too.
    """

    url = "https://netbird.example"
    stretched = ""

    def __init__(
        self,
        *,
        collectors: Container[str],
        fetch: Fetch,
        clock: Clock,
        now: Callable[[], float],
        jitter: Callable[[], float] = lambda: 0.5,
        intervals: Mapping[str, float] | None = None,
        metrics_max_age: float | None = None,
        choice: MetricFilter = EVERYTHING,
        budget: Budget | None = None,
        important_groups: tuple[str, ...] = (),
        observe: Callable[[Inventory], None] = lambda _: None,
        page_max_bytes: float = inf,
    ) -> None:
        self.clock = clock
        self.selected = selection(collectors, intervals or {}, choice=choice)
        self.collectors = self.selected.collectors
        self.registry = CollectorRegistry()
        self.budget = Budget() if budget is None else budget
        self.telemetry = AccountTelemetry(
            registry=self.registry,
            periods=self.selected.periods,
            collectors=[collector.name for collector in self.collectors],
            budget=lambda: self.budget.per_minute,
        )
        self.history = History(period=self.selected.periods[UP])
        self.pages = Pages([c.name for c in self.collectors])
        self.attention = Attention(
            lambda: self.inventory,
            standings=self.telemetry.standings,
            now=now,
            chosen=important_groups,
        )
        attention(self.registry, lambda: self.attention.found.counts)
        page_size(self.registry, self.pages)
        slicer = Slicer(clock)
        self.rounds = Rounds(
            collectors=self.collectors,
            inventory=Inventory(detail=choice.detail),
            fetch=fetch,
            pages=self.pages,
            slicer=slicer,
            page_max_bytes=page_max_bytes,
            failed=self.telemetry.collector_failed,
        )
        self.refresher = Refresher(
            selection=self.selected,
            metrics_max_age=metrics_max_age,
            rounds=self.rounds,
            telemetry=self.telemetry,
            budget=self.budget,
            clock=clock,
            now=now,
            jitter=jitter,
            observe=observe,
            look=Looking(self.attention.look, slicer, Logger()),
        )

    def observed(self, attempt: Attempt) -> None:
        """What the client tells of every attempt."""
        self.telemetry.attempted(attempt)
        self.budget.observe(attempt, self.clock.seconds())

    @property
    def inventory(self) -> Inventory:
        """What is known now."""
        return self.rounds.inventory

    def page(self) -> str:
        """What the collectors tell now."""
        slices = self.pages.whole().plain(piece(b"", last=True)).slices
        return b"".join(slices).decode()

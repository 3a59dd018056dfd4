"""The parts between `fetch` and the page, wired as the program wires them."""

from collections.abc import Callable, Container, Mapping

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock

from api_exporter.collectors.selection import selection
from api_exporter.exposition.pages import Pages, piece
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Fetch
from api_exporter.refresh.refresher import Refresher
from api_exporter.telemetry.instruments import Telemetry
from api_exporter.version import Build


class Wired:
    """A Refresher and everything that it works on.

    Args:
        intervals: seconds between refreshes of resources, where not the usual ones.
    """

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
        observe: Callable[[Inventory], None] = lambda _: None,
    ) -> None:
        self.selected = selection(collectors, intervals or {})
        self.registry = CollectorRegistry()
        self.telemetry = Telemetry(
            registry=self.registry,
            build=Build(version="0"),
            periods=self.selected.periods,
        )
        self.pages = Pages([c.name for c in self.selected.collectors])
        self.refresher = Refresher(
            selection=self.selected,
            metrics_max_age=metrics_max_age,
            inventory=Inventory(),
            fetch=fetch,
            pages=self.pages,
            telemetry=self.telemetry,
            clock=clock,
            now=now,
            jitter=jitter,
            observe=observe,
        )

    def page(self) -> str:
        """What the collectors tell now."""
        slices = self.pages.whole().plain(piece(b"", last=True)).slices
        return b"".join(slices).decode()

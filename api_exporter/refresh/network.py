"""A network as far as it is known, kept fresh: what pages and `--check` read.

It is handed `fetch`, clock, wall time, chance and a registry, so that a test or a
simulation needs nothing else.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from twisted.application.service import IService, MultiService
from twisted.internet.defer import CancelledError, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from api_exporter.attention.thresholds import Thresholds
from api_exporter.attention.watch import Attention, Ends, look
from api_exporter.collectors.table import Collector
from api_exporter.exposition.pages import Pages, piece
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.ports import Attempt, Compute, Fetch, Now
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.pipeline import BodyReader, Pipeline, Source
from api_exporter.refresh.quotas import Quota
from api_exporter.refresh.refresher import Refresher
from api_exporter.refresh.unknown_groups import UnknownGroups
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import attention, page_size
from api_exporter.telemetry.history import History
from api_exporter.telemetry.log import log_of
from api_exporter.upstream.backoff import Jitter

log = Logger()

CONSUMPTION = "agent_consumption"

NOTHING_KNOWN = Inventory()


class AccountPart(Struct, frozen=True, kw_only=True):
    """Something that not every account has; see `events.wiring`.

    Attributes:
        service: lives as long as the account.
        body_readers: by resource, who gets its bodies.
        sources: by resource, who asks for its bodies.
        reload: looks at files that may have been replaced.
    """

    service: IService | None = None
    body_readers: Mapping[str, BodyReader] = {}
    sources: Mapping[str, Source] = {}
    reload: Callable[[], object] = lambda: None


class Network(MultiService):
    """Everything of an account but its client.

    Args:
        quota: what may be asked for, and how often.
        compute: the process's compute thread.
        name: of the account, empty where it is the only one.
        url: the upstream's base address.
        inventory: to start with, so an empty one.
        metrics_max_age: seconds after which what cannot be refreshed is withdrawn; None
            where its period is to say.
        thresholds: None for those that came with the program.
        certificates: when they end.
        reach: says at the start whether the upstream can be reached.
        parts: what the account has beside the usual.

    Attributes:
        selection: what is published and asked for.
        stretched: by how much the intervals are, in a line; "" if they are not.
        warning: what the access log has to do without, in a line; "" for nothing.
        telemetry: how refreshes and requests went.
        pages: what is published now.
        history: how many peers were connected.
        attention: what of it needs attention.
        pipeline: reads a resource, whoever wants that.
    """

    _defect = False

    def __init__(
        self,
        *,
        fetch: Fetch,
        quota: Quota,
        clock: IReactorTime,
        now: Now,
        jitter: Jitter,
        registry: CollectorRegistry,
        compute: Compute = compute_at_once,
        name: str = "",
        url: str = "",
        inventory: Inventory = NOTHING_KNOWN,
        page_max_bytes: float = inf,
        metrics_max_age: float | None = None,
        important_groups: tuple[str, ...] = (),
        thresholds: Thresholds | None = None,
        certificates: Ends = lambda: (None, None),
        reach: Callable[[], Awaitable[None]] | None = None,
        parts: Sequence[AccountPart] = (),
    ) -> None:
        super().__init__()
        self.account, self.url = name, url
        self.stretched, self.warning = quota.stretched, quota.warning
        self.selection = selected = quota.selection
        self._budget, self._clock, self._now = quota.budget, clock, now
        self._compute, self._looking = compute, DeferredLock()
        self._log = log_of(name, log)
        self._unknown_groups = UnknownGroups(self._log)
        self.pages = Pages([collector.name for collector in selected.collectors])
        self.telemetry = _telemetry(registry, quota)
        self.history = History(period=selected.periods[UP])
        self.attention = self._attention(important_groups, thresholds, certificates)
        self._instrument(registry)
        period = selected.periods.get(CONSUMPTION, 0.0)
        self.pipeline = Pipeline(
            collectors=selected.collectors,
            inventory=replace(inventory, consumption_period=period),
            fetch=fetch,
            pages=self.pages,
            compute=compute,
            now=now,
            page_max_bytes=page_max_bytes,
            failed=self.telemetry.collector_failed,
            body_readers=_by_resource(parts),
            sources={name: s for part in parts for name, s in part.sources.items()},
            account=name,
        )
        self._refresher = Refresher(
            quota=quota,
            metrics_max_age=metrics_max_age,
            pipeline=self.pipeline,
            telemetry=self.telemetry,
            clock=clock,
            now=now,
            jitter=jitter,
            after=self._after,
            reach=reach,
            account=name,
        )
        self._refresher.setServiceParent(self)

    def _attention(
        self, groups: tuple[str, ...], thresholds: Thresholds | None, ends: Ends
    ) -> Attention:
        return Attention(
            lambda: self.inventory,
            standings=self.telemetry.standings,
            now=self._now,
            chosen=groups,
            thresholds=thresholds,
            ends=ends,
        )

    def _instrument(self, registry: CollectorRegistry) -> None:
        page_size(registry, self.pages)
        attention(registry, lambda: self.attention.found.counts)

    def attempted(self, attempt: Attempt) -> None:
        """Count one request on the wire, which whoever makes it tells of."""
        self.telemetry.attempted(attempt)
        self._budget.observe(attempt, self._clock.seconds())

    def on_silent(self, path: str) -> None:
        """A request has no response header yet, see `Refresher.silent`."""
        self._refresher.silent(path)

    @property
    def collectors(self) -> Sequence[Collector]:
        """The enabled ones."""
        return self.selection.collectors

    @property
    def inventory(self) -> Inventory:
        return self.pipeline.inventory

    def text(self) -> bytes:
        """What the collectors publish now, without our own metrics."""
        return b"".join(self.pages.whole().plain(piece(b"", last=True)).slices)

    async def _after(self, resource: str) -> None:
        """Update what follows from a refresh or a withdrawal of a resource.

        A defect of that must not end the refreshes. It is logged when it begins.
        """
        peers = self.inventory.peers
        if resource == UP and self.telemetry.standings[UP].up and peers is not None:
            self.history.observe(self._now(), peers)
            self._unknown_groups.warn(self.inventory)
        try:
            async with self._looking:
                self.attention.last = await self._compute(
                    look, self.attention.snapshot(), resource, self.attention.last
                )
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - see above
            if not self._defect:
                self._log.failure("internal error while computing the findings")
            self._defect = True
        else:
            self._defect = False


def _telemetry(registry: CollectorRegistry, quota: Quota) -> AccountTelemetry:
    return AccountTelemetry(
        registry=registry,
        periods=quota.selection.periods,
        collectors=[collector.name for collector in quota.selection.collectors],
        budget=lambda: quota.budget.per_minute,
    )


def _by_resource(parts: Sequence[AccountPart]) -> dict[str, list[BodyReader]]:
    readers: dict[str, list[BodyReader]] = {}
    for part in parts:
        for resource, reader in part.body_readers.items():
            readers.setdefault(resource, []).append(reader)
    return readers

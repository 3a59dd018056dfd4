"""The network of one account: its records, metrics and findings, kept fresh.

Web pages and `--check` read it. `fetch`, clocks, jitter and registry are
arguments, so a test or a simulation can replace all of them.
"""

from collections.abc import Awaitable, Callable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService
from twisted.internet.defer import CancelledError, DeferredLock
from twisted.logger import Logger, LogLevel

from api_exporter.attention.finding import Snapshot
from api_exporter.attention.history import History, Sample, Worst
from api_exporter.attention.thresholds import SEVERITIES, Thresholds, default_thresholds
from api_exporter.clocks import Clocks, log_of
from api_exporter.exposition.pages import Pages, piece
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import PEERS, SERVER_VERSION, Resource
from api_exporter.netbird.unknown import Unknown
from api_exporter.ports import Attempt, Compute, Fetch, UpstreamError
from api_exporter.refresh.budget import RefusedPaths
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.pipeline import Log, Pipeline
from api_exporter.refresh.refresher import Refresher
from api_exporter.refresh.request_plans import RequestPlan, describe_cost
from api_exporter.refresh.states import States
from api_exporter.refresh.transitions import LogLine
from api_exporter.settings.definitions import AccountSettings
from api_exporter.subjects import watch
from api_exporter.subjects.account import INSTANCE_VERSION
from api_exporter.subjects.table import RULES
from api_exporter.subjects.watch import CertificateLifetimes, KeptFindings
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import register_finding_gauges, register_page_gauges

log = Logger()

Follower = Callable[[str], Awaitable[None]]
"""Called with the name of the refreshed or withdrawn resource."""


class AccountNetwork(MultiService):
    """The state of an account's network, and the service that keeps it fresh.

    Args:
        certificates: returns the lifetimes of the upstream's and the client's
            certificate.
        test_connection: tests at the start whether the upstream is reachable.
        refused_paths: of the server, for all accounts that read it.

    Attributes:
        followers: called after each refresh, one after the other.
        findings: those of the newest evaluation.
    """

    def __init__(
        self,
        *,
        settings: AccountSettings,
        fetch: Fetch,
        plan: RequestPlan,
        clocks: Clocks,
        registry: CollectorRegistry,
        compute: Compute = compute_at_once,
        thresholds: Thresholds | None = None,
        certificates: CertificateLifetimes = lambda: (None, None),
        test_connection: Callable[[], Awaitable[None]] | None = None,
        refused_paths: RefusedPaths | None = None,
        logs: Mapping[str, Log] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self.account, self.url = clocks.account, settings.upstream_api_url
        self.followers: list[Follower] = [self.update_findings]
        self._defective, self._unreported = set[Follower](), dict[str, None]()
        self.plan, self.selection = plan, plan.selection
        self._clock, self._now = clocks.clock, clocks.now
        self.refused_paths = refused_paths or RefusedPaths()
        self._compute, self._followers_lock = compute, DeferredLock()
        self._log = log_of(clocks.account, log)
        self._unknown_groups = UnknownGroups(self._log)
        self._unknown_log = UnknownLog(self._log)
        collectors = [collector.name for collector in self.selection.collectors]
        self.pages = Pages(collectors)
        self.states = States(self.selection.intervals, self._log_line)
        self.telemetry = AccountTelemetry(
            registry=registry,
            states=self.states,
            created=clocks.now(),
            reasons=self.states.reasons,
            collectors=collectors,
            budget=lambda: plan.budget.per_minute,
        )
        self.history = History(interval=self.selection.intervals[PEERS])
        self.findings = KeptFindings(started_at=clocks.now())
        self.thresholds = thresholds or default_thresholds()
        self._important, self._certificates = settings.important_groups, certificates
        self._register_gauges(registry)
        self.pipeline = self._make_pipeline(settings, fetch, clocks, logs)
        self.refresher = Refresher(
            states=self.states,
            plan=plan,
            metrics_max_age=settings.metrics_max_age,
            pipeline=self.pipeline,
            clocks=clocks,
            refused_paths=self.refused_paths,
            on_refreshed=self._on_refreshed,
            test_connection=test_connection,
        )
        self.refresher.setServiceParent(self)

    def _register_gauges(self, registry: CollectorRegistry) -> None:
        register_page_gauges(registry, self.pages)
        register_finding_gauges(
            registry,
            findings=lambda: self.findings.found.counts,
            series=lambda: self.findings.found.series,
            omitted=lambda: self.findings.found.omitted,
            thresholds=lambda: self.thresholds.of_alerts,
        )

    def _make_pipeline(
        self,
        settings: AccountSettings,
        fetch: Fetch,
        clocks: Clocks,
        logs: Mapping[str, Log],
    ) -> Pipeline:
        return Pipeline(
            states=self.states,
            collectors=self.selection.collectors,
            inventory=Inventory(
                rules=RULES,
                personal=settings.expose_personal_data,
                detail=settings.peer_detail,
                intervals=MappingProxyType(self.selection.intervals),
            ),
            fetch=fetch,
            pages=self.pages,
            compute=self._compute,
            clocks=clocks,
            list_max_records=settings.list_max_records,
            page_max_bytes=settings.page_max_bytes,
            on_collector_failed=self.telemetry.collector_failed,
            on_other_account=self._on_other_account,
            logs=logs,
        )

    async def begin_with(self, before: "AccountNetwork") -> None:
        """Publish the records of a network that has stopped, until they are read again.

        They expire when they would have. History and findings stay, too. If the page
        would be too long, the network begins without records.
        """
        old = {(r.name, id(r.decoder)) for r in before.selection.resources}
        new = self.selection.resources
        names = {r.name for r in new if (r.name, id(r.decoder)) in old}
        inventory = replace(
            before.inventory,
            personal=self.inventory.personal,
            detail=self.inventory.detail,
            intervals=self.inventory.intervals,
            former_accounts=0,
        )
        for name in inventory.versions.keys() - names:
            inventory = inventory.replacing(name, None)
        try:
            await self.pipeline.begin_with(inventory)
        except UpstreamError as error:
            self._log.warn("cannot keep the metrics: {error}", error=str(error))
            return
        self.refresher.begin_with(before.refresher, names)
        self.telemetry.reachable = before.telemetry.reachable
        self.telemetry.recent.extend(before.telemetry.recent)
        if self.history.step == before.history.step:
            self.history = before.history
        self.findings = before.findings
        await self._on_refreshed(PEERS)

    def _on_other_account(self) -> None:
        self._log.warn("the token is of another account: all records are removed")
        self.history = History(interval=self.history.step)
        self.findings = KeptFindings(started_at=self._now())
        self.refresher.begin_again()

    def count_attempt(self, attempt: Attempt) -> None:
        self.telemetry.count_attempt(attempt)
        self.states.record_attempt(attempt)
        self.plan.budget.observe(attempt, self._clock.seconds())
        self.refused_paths.observe(attempt, self._clock.seconds())

    def is_held_back(self, resource: Resource[Any]) -> bool:
        """Return whether too many paths were refused: see Note [Not a scanner]."""
        now = self._clock.seconds()
        return self.refused_paths.allowed_at(resource.path, now) > now

    def _log_line(self, resource: str, line: LogLine) -> None:
        level = LogLevel.levelWithName(line.level)
        self._log.emit(level, line.text, resource=resource, **line.fields)

    @property
    def inventory(self) -> Inventory:
        return self.pipeline.inventory

    @property
    def requests_per_minute(self) -> float:
        return sum(60.0 / interval for interval in self._requested().values())

    @property
    def request_limit(self) -> float | None:
        """The stated limit of requests a minute; None if none is stated."""
        limit = self.plan.budget.limit
        return None if limit is None else limit[0]

    def describe_cost(self) -> str:
        return describe_cost(self._requested(), self.plan.budget.limit)

    def _requested(self) -> dict[str, float]:
        # A list that is not known yet may have records.
        counts = {name: len(known) for name, known in self.inventory.records.items()}
        intervals = self.selection.intervals
        return {
            one.name: one.min_interval(counts.get(one.name, 1), intervals[one.name])
            for one in self.selection.resources
            if self.pipeline.request_path(one) is not None
        }

    def text(self) -> bytes:
        """Return the collectors' metrics, without the exporter's own."""
        return b"".join(self.pages.whole().plain(piece(b"", last=True)).slices)

    async def _on_refreshed(self, resource: str) -> None:
        """Update history, findings and followers after a refresh or a withdrawal."""
        is_read = resource == PEERS and self.states[PEERS].up
        peers = self.inventory.peers if is_read else None
        if peers is not None:
            self._unknown_groups.warn(self.inventory)
        self._report_unknown(resource)
        async with self._followers_lock:
            for follower in self.followers:
                await self._follow(follower, resource)
        if peers is not None:
            counts = self.findings.found.counts
            worst: Worst = next((name for name in SEVERITIES if counts.get(name)), None)
            worst = worst if counts else "unknown"
            sample = Sample(len(peers), self.inventory.connected_count, worst)
            self.history.observe(self._now(), sample)

    def _report_unknown(self, resource: str) -> None:
        """Log what this version does not know, once the server's version was read."""
        self._unreported[resource] = None
        version = self.states.get(SERVER_VERSION)
        if version is None or version.ended_at is not None:
            for name in self._unreported:
                if state := self.states.get(name):
                    self._unknown_log.report(name, state.unknown, self.inventory)
            self._unreported.clear()

    async def _follow(self, follower: Follower, resource: str) -> None:
        """Call a follower. A defect must not end refreshes; its begin is logged."""
        try:
            await follower(resource)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            if follower not in self._defective and isinstance(error, MemoryError):
                self._log.warn("not enough memory for the findings after a refresh")
            elif follower not in self._defective:
                self._log.failure("internal error after a refresh")
            self._defective.add(follower)
        else:
            self._defective.discard(follower)

    async def use_thresholds(self, thresholds: Thresholds | None) -> None:
        thresholds = thresholds or default_thresholds()
        if thresholds != self.thresholds:
            self.thresholds = thresholds
            async with self._followers_lock:
                await self._follow(self.update_findings, PEERS)

    def snapshot(self) -> Snapshot:
        server_certificate, client_certificate = self._certificates()
        return Snapshot(
            inventory=self.inventory,
            thresholds=self.thresholds,
            now=self._now(),
            seconds=self._clock.seconds(),
            states=MappingProxyType(dict(self.states)),
            important_groups=self._important,
            server_certificate=server_certificate,
            client_certificate=client_certificate,
        )

    async def update_findings(self, resource: str) -> None:
        before = self.findings
        last = await self._compute(
            watch.update_findings, self.snapshot(), resource, before
        )
        if self.findings is not before:  # they are of another account
            return
        self.findings = last
        until = min((wait.until for wait in last.waits.values()), default=inf)
        self.refresher.await_lists(last.awaited, until)


class UnknownGroups:
    """Logs each missing group once, and again after the group existed."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._logged: frozenset[str] = frozenset()

    def warn(self, known: Inventory) -> None:
        if known.groups is None:
            return
        missing = frozenset(known.missing_groups)
        for name in sorted(missing - self._logged):
            self._log.warn(
                "PEER_DETAIL names {group}, which is neither name nor id of a group",
                group=repr(name),
            )
        self._logged = missing


class UnknownLog:
    """Logs each unknown field or value once, and again for another server version."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._version = ""
        self._logged: dict[str, frozenset[str]] = {}

    def report(self, resource: str, unknown: Unknown, inventory: Inventory) -> None:
        for server in INSTANCE_VERSION.of(inventory) or ():
            if self._version and server.management_current_version != self._version:
                self._logged.clear()
            self._version = server.management_current_version
        logged = self._logged.get(resource, frozenset())
        if names := frozenset(unknown.names()) - logged:
            self._logged[resource] = logged | names
            self._log.info(
                "{resource} of NetBird {version} has fields or values that"
                " this version of api-exporter does not know: {names}",
                resource=resource,
                version=self._version or "(unknown version)",
                names=", ".join(sorted(names)),
            )

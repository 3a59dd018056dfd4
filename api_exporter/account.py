"""All that one account of an upstream needs, as one service.

It fetches, keeps and renders; what the process has once, it is not concerned with.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger

from api_exporter.attention.thresholds import Thresholds
from api_exporter.attention.watch import Attention
from api_exporter.collectors.table import Collector
from api_exporter.exposition.pages import Pages
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import BY_NAME, UP
from api_exporter.ports import Attempt, Fetch
from api_exporter.refresh.granted import granted
from api_exporter.refresh.looking import Looking
from api_exporter.refresh.missing import Missing
from api_exporter.refresh.refresher import Refresher
from api_exporter.refresh.rounds import Rounds
from api_exporter.refresh.slices import Slicer
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.token import TokenReader
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import (
    attention,
    certificate_ends,
    certificate_readable,
    page_size,
    token_readable,
)
from api_exporter.telemetry.history import History
from api_exporter.telemetry.log import log_of
from api_exporter.upstream.backoff import Jitter
from api_exporter.upstream.body import LargeBodies
from api_exporter.upstream.client import Client
from api_exporter.upstream.tls_policy import TlsPolicies

if TYPE_CHECKING:
    from api_exporter.events.wiring import Journals

log = Logger()

LONGEST_END = 0.5
"""Seconds that an upstream may take to let go of us."""


class Shared:
    """What all accounts of a process have in common.

    Args:
        accounts: all of them.
        thresholds: None for those that came with the program.

    Attributes:
        thresholds: the same.
        slicer: makes sure that they compute in turns.
        trusts: their contexts of TLS, of which each is a megabyte.
        large: where their large bodies wait for each other.
        granted: by name, what each may ask for.
    """

    def __init__(
        self,
        reactor: PosixReactorBase,
        accounts: Iterable[AccountSettings],
        thresholds: Thresholds | None = None,
    ) -> None:
        self._reactor = clock = reactor
        self.thresholds = thresholds
        self.slicer = Slicer(clock)
        self.trusts = TlsPolicies()
        self.large = LargeBodies(clock)
        self.granted = granted(accounts)

    @cached_property
    def journals(self) -> "Journals":
        """Write audit events. Nobody else pays for importing them."""
        from api_exporter.events.wiring import Journals  # noqa: PLC0415

        return Journals(self._reactor, self.slicer.run)


class Account(MultiService):
    """Keeps an account's resources fresh while it runs.

    Args:
        now: seconds since the epoch.
        after: seconds from the start of the service to the first request.

    Attributes:
        account: its name, empty where it is the only one.
        now: seconds since the epoch.
        url: the upstream's base address.
        selection: what is published and asked for.
        client: may be used without starting anything, if it is stopped after it.
        pages: what is published now.
        telemetry: how its refreshes and requests went.
        history: how many peers were connected.
        attention: what of it needs attention.
        stretched: by how much the intervals are, in a line; "" if they are not.
    """

    def __init__(
        self,
        settings: AccountSettings,
        reactor: PosixReactorBase,
        *,
        shared: Shared,
        registry: CollectorRegistry,
        now: Callable[[], float],
        jitter: Jitter,
        after: float = 0.0,
    ) -> None:
        super().__init__()
        self._clock = reactor
        self._after = after
        self._starting: IDelayedCall | None = None
        self.now = now
        mine = shared.granted[settings.name]
        self.selection = selected = mine.selection
        self.stretched = mine.stretched
        self._log = log_of(settings.name, log)
        self.account = settings.name
        self.url = settings.upstream_api_url
        self.pages = Pages([collector.name for collector in selected.collectors])
        budget = mine.budget
        self.telemetry = AccountTelemetry(
            registry=registry,
            periods=selected.periods,
            collectors=[collector.name for collector in selected.collectors],
            budget=lambda: budget.per_minute,
        )
        page_size(registry, self.pages)
        if any(collector.name == "drop_in" for collector in selected.collectors):
            from api_exporter.telemetry.drop_in import (  # noqa: PLC0415
                ScrapesTelemetry,
            )

            self.telemetry.ended = ScrapesTelemetry(registry).ended
        self.history = History(period=selected.periods[UP])

        def attempted(attempt: Attempt) -> None:
            self.telemetry.attempted(attempt)
            budget.observe(attempt, reactor.seconds())

        self.client = Client(
            settings,
            reactor,
            now=now,
            jitter=jitter,
            observe=attempted,
            trusts=shared.trusts,
            large=shared.large,
        )
        token = self.client.token
        if isinstance(token, TokenReader):
            token_readable(registry, lambda: token.readable)
        trust = self.client.trust
        if settings.identity is not None:
            certificate_readable(registry, lambda: not trust.unusable)
        fetch: Fetch = self.client.upstream.fetch
        self._look: list[Callable[[], object]] = [token, self.client.reload]
        if settings.events_file is not None:
            events = shared.journals.journal(settings, registry, self._log)
            fetch = events.tapping(fetch, BY_NAME["events"].path)
            self._look.append(events.look)
            self.addService(events)
        client = self.client

        def upstream_ends() -> float | None:
            return None if client.shown is None else client.shown.ends

        def own_ends() -> float | None:
            return trust.own_end

        certificate_ends(registry, upstream=upstream_ends, client=own_ends)
        self._rounds = Rounds(
            collectors=selected.collectors,
            inventory=Inventory(
                personal=settings.expose_personal_data, detail=settings.peer_detail
            ),
            fetch=fetch,
            pages=self.pages,
            slicer=shared.slicer,
            page_max_bytes=settings.page_max_bytes,
            failed=self.telemetry.collector_failed,
            account=settings.name,
        )
        self.attention = Attention(
            lambda: self.inventory,
            standings=self.telemetry.standings,
            now=now,
            chosen=settings.important_groups,
            thresholds=shared.thresholds,
            ends=lambda: (upstream_ends(), own_ends()),
        )
        attention(registry, lambda: self.attention.found.counts)
        missing = Missing(self._log)

        def observe(known: Inventory) -> None:
            self.history.observe(now(), known.peers or ())
            missing.observe(known)

        refresher = Refresher(
            selection=selected,
            metrics_max_age=settings.metrics_max_age,
            rounds=self._rounds,
            telemetry=self.telemetry,
            budget=budget,
            clock=reactor,
            now=now,
            jitter=jitter,
            observe=observe,
            look=Looking(self.attention.look, shared.slicer, self._log),
            reach=client.upstream.probe,
            account=settings.name,
        )
        self.addService(self.client)
        self.addService(refresher)

    def startService(self) -> None:
        if self.stretched:
            self._log.info("{words}", words=self.stretched)
        if self._after:
            self._starting = self._clock.callLater(self._after, super().startService)
        else:
            super().startService()

    def stopService(self) -> Deferred[None]:
        """Fires when nothing is under way, or the upstream does not let go."""
        if self._starting is not None and self._starting.active():
            self._starting.cancel()
        over: Deferred[None] = Deferred()
        timer = self._clock.callLater(LONGEST_END, over.callback, None)

        def stopped(_: object) -> None:
            if timer.active():
                timer.cancel()
                over.callback(None)

        super().stopService().addBoth(stopped)
        return over

    def look(self) -> None:
        """Look at files that may have been replaced, and complain where one is gone."""
        for look in self._look:
            look()

    @property
    def collectors(self) -> Sequence[Collector]:
        """The enabled ones."""
        return self.selection.collectors

    @property
    def inventory(self) -> Inventory:
        """What is known of the network now."""
        return self._rounds.inventory

"""An account of the NetBird API, as one service: its client and its network.

State that all accounts share is in `SharedState`.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from functools import cache
from types import MappingProxyType

from prometheus_client import CollectorRegistry
from twisted.application.service import IService, MultiService
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from api_exporter.attention.thresholds import Lifetime, Thresholds
from api_exporter.clocks import Clocks, log_of
from api_exporter.ports import Compute, Jitter, Now
from api_exporter.refresh.budget import RefusedPaths
from api_exporter.refresh.compute import SMALL_BYTES, AccountCompute, compute_at_once
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.pipeline import Log
from api_exporter.refresh.request_plans import request_plans
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.token import TokenReader
from api_exporter.telemetry.gauges import register_client_gauges
from api_exporter.upstream.body import BodyMemory
from api_exporter.upstream.client import Client
from api_exporter.upstream.tls_policy import MakePolicy, TlsPolicy

log = Logger()

MAX_CLOSE_SECONDS = 0.5
"""Seconds that a stop waits for the upstream to close connections."""

MAX_LOG_STOP_SECONDS = 5.0
"""Seconds that a stop waits for a log that is being written."""


class SharedState:
    """The state that all accounts of a process share.

    Attributes:
        thresholds: None for the default thresholds.
        small_bytes: the most bytes of a response that needs no compute thread.
        make_policy: shares TLS policies: a TLS context takes nearly a megabyte.
        refused_paths: returns those of a server, by its address.
        log_threads: the threads that write logs; None if no log is written.
    """

    def __init__(
        self,
        accounts: Iterable[AccountSettings],
        thresholds: Thresholds | None = None,
        log_threads: ThreadPool | None = None,
        compute: Compute = compute_at_once,
        small_bytes: int = SMALL_BYTES,
    ) -> None:
        self.thresholds = thresholds
        self.compute = compute
        self.small_bytes = small_bytes
        self.make_policy: MakePolicy = cache(TlsPolicy)
        self.body_memory = BodyMemory()
        self.refused_paths = cache(lambda url: RefusedPaths())  # noqa: ARG005
        self.plans = request_plans(accounts)
        self.log_threads = log_threads

    def changed(
        self,
        accounts: Iterable[AccountSettings],
        thresholds: Thresholds | None,
        same_tokens: Iterable[str],
    ) -> "SharedState":
        """Return the state for other settings.

        Args:
            same_tokens: the accounts that keep the budget of their token.
        """
        after = copy(self)
        after.thresholds = thresholds
        budgets = {name: self.plans[name].budget for name in same_tokens}
        after.plans = request_plans(accounts, budgets)
        return after


class ServicesWithDeadline(MultiService):
    """Services with a maximum time for their stop."""

    def __init__(
        self, services: Iterable[IService], seconds: float, clock: IReactorTime
    ) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        for service in services:
            self.addService(service)

    def stopService(self) -> Deferred[object]:
        """Stop; the result fires when all services have stopped, or at the deadline."""
        deadline: Deferred[object] = deferLater(self._clock, self._seconds)
        super().stopService().addBoth(lambda _: deadline.cancel())
        return deadline.addErrback(lambda failure: failure.trap(CancelledError))


class Account(MultiService):
    """Keeps an account's resources fresh while it runs.

    Args:
        start_delay: seconds from the start of the service to the first request.
        logs: by the resource that they request.

    Attributes:
        client: usable without starting the account, if it is stopped afterwards.
        network: likewise.
    """

    def __init__(
        self,
        settings: AccountSettings,
        reactor: PosixReactorBase,
        *,
        shared: SharedState,
        registry: CollectorRegistry,
        now: Now,
        jitter: Jitter,
        start_delay: float,
        logs: Mapping[str, Log] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._log = log_of(settings.name, log)
        self._clock = reactor
        self._delay, self._logs = start_delay, logs
        self._read = settings.upstream_api_url, settings.upstream_account
        self._delayed: IDelayedCall | None = None
        self.now = now
        clocks = Clocks(reactor, now, jitter, settings.name)
        self.client = client = Client(
            settings,
            reactor,
            clocks=clocks,
            # The network, which needs this client, is made below.
            on_attempt=lambda made: self.network.count_attempt(made),  # noqa: PLW0108
            on_silent=lambda p: self.network.refresher.mark_silent(p),  # noqa: PLW0108
            make_policy=shared.make_policy,
            body_memory=shared.body_memory,
        )
        compute = AccountCompute(
            shared.compute, client.fetcher.fetch, shared.small_bytes
        )
        self.network = AccountNetwork(
            settings=settings,
            fetch=compute.fetch,
            plan=shared.plans[settings.name],
            clocks=clocks,
            registry=registry,
            compute=compute,
            thresholds=shared.thresholds,
            certificates=self._certificates,
            test_connection=client.fetcher.log_reachability,
            refused_paths=shared.refused_paths(settings.upstream_api_url),
            logs=logs,
        )
        if isinstance(client.token, TokenReader):
            client.token.on_changed = self.network.refresher.on_token_changed
        self._register_gauges(
            registry, has_certificate=settings.client_certificate is not None
        )
        self.addService(
            ServicesWithDeadline(logs.values(), MAX_LOG_STOP_SECONDS, reactor)
        )
        network_services = [client, self.network]
        self.addService(
            ServicesWithDeadline(network_services, MAX_CLOSE_SECONDS, reactor)
        )

    def _register_gauges(
        self, registry: CollectorRegistry, *, has_certificate: bool
    ) -> None:
        token, tls_policy = self.client.token, self.client.tls_policy
        register_client_gauges(
            registry,
            upstream_expiry=lambda: _ends_at(self._certificates()[0]),
            client_expiry=lambda: _ends_at(self._certificates()[1]),
            token_readable=lambda: (
                token.readable if isinstance(token, TokenReader) else None
            ),
            certificate_readable=lambda: (
                not tls_policy.client_problem if has_certificate else None
            ),
        )

    def _certificates(self) -> tuple[Lifetime | None, Lifetime | None]:
        server = self.client.server_certificate
        client = self.client.tls_policy.client_certificate
        return (
            Lifetime(server.begins_at, server.expires_at) if server else None,
            Lifetime(client.begins, client.ends) if client else None,
        )

    def startService(self) -> None:
        plan = self.network.plan
        if plan.intervals_note:
            self._log.info("{text}", text=plan.intervals_note)
        if plan.requests_warning:
            self._log.warn("{text}", text=plan.requests_warning)
        if self._delay:
            self._delayed = self._clock.callLater(self._delay, super().startService)
        else:
            super().startService()

    def stopService(self) -> Deferred[object]:
        """Stop; the result fires when no request runs, or at the deadlines."""
        if self._delayed is not None and self._delayed.active():
            self._delayed.cancel()
        stopped: Deferred[object] = super().stopService()
        return stopped

    async def begin_with(self, before: "Account") -> None:
        """Begin with what a stopped account with the same id and address has read."""
        if self._read == before._read:
            self.client.server_certificate = before.client.server_certificate
            for name in self._logs.keys() & before._logs.keys():
                self._logs[name].begin_with(before._logs[name])
            # A file that was replaced since the last request is noticed here.
            is_other = self.client.token() != before.client.token()
            await self.network.begin_with(before.network)
            if is_other or before.network.pipeline.untried:
                self.network.refresher.on_token_changed()

    def reload(self) -> None:
        """Reload replaced files, and log a warning for a missing one."""
        self.client.token()
        self.client.reload()


def _ends_at(lifetime: Lifetime | None) -> float | None:
    return None if lifetime is None else lifetime.ends_at

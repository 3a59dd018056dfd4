"""All accounts of the process. A reload replaces those whose settings have changed."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger

from api_exporter.account import Account, SharedState
from api_exporter.account import log as account_log
from api_exporter.clocks import log_of
from api_exporter.ports import Jitter, Now
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.pipeline import Log
from api_exporter.settings.definitions import AccountSettings, Settings

if TYPE_CHECKING:  # imported only if an account has a log
    from api_exporter.logs.wiring import LogFactory

log = Logger()

STARTS_PER_SECOND = 20
"""Maximum accounts that start in a second: each one then sends requests."""


class AccountSet(MultiService):
    """The accounts of the process as one service.

    Note [Replaced accounts]. An account has no setting that changes while it runs. If
    its settings change, it stops, and a new account starts. Until a list is read again,
    its former records are published with the new settings. If the address or the
    account's id changes, the records may be of another network: then the new account
    begins without records, as after a restart.

    Attributes:
        networks: by the account's name. A reload changes the mapping itself.
    """

    def __init__(
        self,
        settings: Settings,
        reactor: PosixReactorBase,
        shared: SharedState,
        *,
        now: Now,
        jitter: Jitter,
    ) -> None:
        super().__init__()
        self._reactor, self._shared = reactor, shared
        self.now, self._jitter = now, jitter
        self.settings = settings.accounts
        self._stops: Deferred[list[tuple[bool, object]]] = DeferredList([])
        self._follow: Callable[[AccountNetwork], None] = lambda _: None
        self.accounts: dict[str, Account] = {}
        self.networks: dict[str, AccountNetwork] = {}
        for number, name in enumerate(settings.accounts):
            self.accounts[name] = self._make(settings.accounts[name], shared, number)
            self.accounts[name].setServiceParent(self)
            self.networks[name] = self.accounts[name].network

    @cached_property
    def _logs(self) -> "LogFactory":
        from api_exporter.logs.wiring import LogFactory  # noqa: PLC0415

        shared = self._shared
        assert shared.log_threads is not None
        return LogFactory(self._reactor, shared.log_threads, shared.compute, self.now)

    def _make(
        self, settings: AccountSettings, shared: SharedState, number: int
    ) -> Account:
        """Make an account. A check has no threads for logs, and opens no log."""
        name, registry = settings.name, CollectorRegistry()
        logs: Mapping[str, Log] = {}
        if shared.log_threads and settings.has_logs:
            intervals = shared.plans[name].selection.intervals
            log = log_of(name, account_log)
            logs = self._logs.logs(settings, registry, log, intervals)
        return Account(
            settings,
            self._reactor,
            shared=shared,
            registry=registry,
            now=self.now,
            jitter=self._jitter,
            start_delay=number / STARTS_PER_SECOND,
            logs=logs,
        )

    async def change(self, settings: Settings) -> bool:
        """Replace accounts by Note [Replaced accounts]; return whether any changed."""
        after, before = settings.accounts, self.settings
        same = [
            n for n, a in after.items() if n in before and a.has_token_of(before[n])
        ]
        shared = self._shared.changed(after.values(), settings.thresholds_file, same)
        changed = [
            name
            for name, account in after.items()
            if account != before.get(name)
            or not shared.plans[name].is_like(self._shared.plans[name])
        ]
        # An account that cannot be made must not stop the one before it.
        made = {n: self._make(after[n], shared, i) for i, n in enumerate(changed)}
        self.settings, self._shared = after, shared
        is_changed = bool(made) or after.keys() != before.keys()
        if is_changed:
            await self._replace(made)
        for network in self.networks.values():
            await network.use_thresholds(shared.thresholds)
        return is_changed and self.running == 1

    async def _replace(self, made: Mapping[str, Account]) -> None:
        old = {
            name: account
            for name, account in self.accounts.items()
            if name in made or name not in self.settings
        }
        stops = [maybeDeferred(account.disownServiceParent) for account in old.values()]
        self._stops = DeferredList(stops)
        await self._stops
        for name, account in made.items():
            self._follow(account.network)
            if self.running and name in old:
                try:
                    await account.begin_with(old[name])
                except Exception:  # noqa: BLE001 - it begins without records
                    log.failure("internal error while publishing former records")
            if self.running:
                account.setServiceParent(self)
        accounts = {**self.accounts, **made}
        self.accounts = {name: accounts[name] for name in self.settings}
        self.networks.clear()
        self.networks.update({n: a.network for n, a in self.accounts.items()})

    def follow(self, follow: Callable[[AccountNetwork], None]) -> None:
        """Call a function for each network now, and for each new one."""
        self._follow = follow
        for network in self.networks.values():
            follow(network)

    def stopService(self) -> Deferred[list[tuple[bool, object]]]:
        """Stop; the result fires when replaced accounts have stopped, too."""
        return DeferredList([super().stopService(), self._stops], consumeErrors=True)

    def reload(self) -> None:
        for account in self.accounts.values():
            account.reload()

"""Settings that change while the program runs: SIGHUP reads all of them again."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from api_exporter.accounts import AccountSet
from api_exporter.netbird.resources import OFF
from api_exporter.settings.definitions import (
    ACCOUNT_SETTINGS,
    LIVE_SETTINGS,
    PROCESS_SETTINGS,
    AccountSettings,
    Settings,
)
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.settings.setting import Setting

log = Logger()


_OTHER_ACCOUNTS = {"ACCOUNTS_DIR", "SHARD"}
"""Settings whose change makes the accounts that are read other ones."""

_ACCOUNTS_STAY = "; until then, all accounts stay as they are"

ReadSettings = Callable[[], Awaitable[Settings]]
"""Reads all settings, in a thread: files may be on a disk that hangs."""


class LiveSettings(Struct, kw_only=True):
    """The settings in use. A mistake in the new ones leaves all as they are.

    Attributes:
        read: reads all settings; it may raise ConfigurationError.
    """

    settings: Settings
    read: ReadSettings
    accounts: AccountSet
    set_log_level: Callable[[str], None]
    on_changed: Callable[[], None]
    lock: DeferredLock = field(default_factory=DeferredLock)

    def reload(self) -> None:
        """Read and apply the settings, and log what changes: names, never values.

        While a reload runs, one more waits, which reads all that has changed by then.
        """
        if not self.lock.waiting:
            reloading = self.lock.run(lambda: Deferred.fromCoroutine(self._reload()))
            reloading.addErrback(partial(log.failure, "internal error in a reload"))

    async def _reload(self) -> None:
        try:
            read = await self.read()
        except ConfigurationError as error:
            why = "; ".join(error.problems)
            log.error("{error}; the previous settings stay in use", error=why)  # noqa: TRY400 - no traceback
            return
        before, (after, fixed) = self.settings, applicable(self.settings, read)
        if fixed:
            log.warn(
                "{names}: a change needs a restart{accounts}",
                names=", ".join(fixed),
                accounts="" if _OTHER_ACCOUNTS.isdisjoint(fixed) else _ACCOUNTS_STAY,
            )
        log.info("reloaded settings: {changes}", changes=describe(before, after))
        self.settings = after
        self.set_log_level(after.log_level)
        if await self.accounts.change(after):
            self.on_changed()


def applicable(running: Settings, read: Settings) -> tuple[Settings, list[str]]:
    """Return the settings that apply now, and names of those that need a restart."""
    fixed = _different(running, read, PROCESS_SETTINGS) - LIVE_SETTINGS
    kept = {name.lower(): getattr(running, name.lower()) for name in fixed}
    if fixed & _OTHER_ACCOUNTS:
        kept["accounts"] = running.accounts
    elif bool(running.output_setting) != bool(read.output_setting):
        kept["accounts"] = accounts = {
            name: _with_same_output(running.accounts.get(name), account)
            for name, account in read.accounts.items()
        }
        for name, account in accounts.items():
            changed = _different(account, read.accounts[name], ACCOUNT_SETTINGS)
            fixed |= {
                f"{setting} of {name}" if name else setting for setting in changed
            }
    return replace(read, **kept), sorted(fixed)


def _with_same_output(
    running: AccountSettings | None, read: AccountSettings
) -> AccountSettings:
    """Return the read settings without a log's move to or from standard output.

    The start decides whether the exporter's own log goes there.
    """
    kept: dict[str, object] = {}
    for resource, file in (
        ("events", "events_file"),
        ("access_log", "access_log_file"),
    ):
        path = getattr(running, file, None)
        if (path == STANDARD_OUTPUT) != (getattr(read, file) == STANDARD_OUTPUT):
            cursor = file.replace("file", "cursor_file")
            kept |= {file: path, cursor: getattr(running, cursor, None)}
            if running and path and read.refresh_intervals.get(resource) == OFF:
                kept["refresh_intervals"] = running.refresh_intervals
    return replace(read, **kept)


def describe(before: Settings, after: Settings) -> str:
    """Return the changes as text, without values."""
    old, new = before.accounts, after.accounts
    names = _different(before, after, PROCESS_SETTINGS)
    for account in old.keys() & new.keys():
        names |= _different(old[account], new[account], ACCOUNT_SETTINGS)
        if old[account].proxy_selection != new[account].proxy_selection:
            names.add("the proxy")
    parts = {
        "changed": names,
        "new accounts": new.keys() - old.keys(),
        "removed accounts": old.keys() - new.keys(),
    }
    found = [
        f"{what} {', '.join(sorted(which))}" for what, which in parts.items() if which
    ]
    return "; ".join(found) or "no change"


def _different(before: Struct, after: Struct, settings: Iterable[Setting]) -> set[str]:
    return {
        setting.name
        for setting in settings
        if getattr(before, setting.name.lower()) != getattr(after, setting.name.lower())
    }

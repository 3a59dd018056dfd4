"""Settings that change while the program runs: SIGHUP reads all of them again."""

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from api_exporter.accounts import AccountSet
from api_exporter.settings.definitions import (
    ACCOUNT_SETTINGS,
    LIVE_SETTINGS,
    PROCESS_SETTINGS,
    Settings,
)
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.setting import Setting

log = Logger()


class LiveSettings:
    """The settings in use. A mistake in the new ones leaves all as they are.

    Args:
        settings: those of the start.
        read: reads all settings; raises ConfigurationError.
        on_changed: called after accounts have changed.
    """

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings],
        *,
        accounts: AccountSet,
        set_log_level: Callable[[str], None],
        on_changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._read = read
        self._accounts = accounts
        self._set_log_level = set_log_level
        self._on_changed = on_changed

    def reload(self) -> None:
        """Read and apply the settings, and log what changes: names, never values."""
        try:
            read = self._read()
        except ConfigurationError as error:
            _log_mistakes(error)
            return
        before, (after, fixed) = self._settings, applicable(self._settings, read)
        if fixed:
            log.warn("{names}: a change needs a restart", names=", ".join(fixed))
        log.info("reloaded settings: {changes}", changes=describe(before, after))
        self._settings = after
        self._set_log_level(after.log_level)
        changing = Deferred.fromCoroutine(self._accounts.change(after))
        changing.addCallback(self._changed)
        changing.addErrback(partial(log.failure, "internal error in a reload"))

    def _changed(self, changed: bool) -> None:
        if changed:
            self._on_changed()


def _log_mistakes(error: ConfigurationError) -> None:
    why = "; ".join(error.problems)
    log.error("{error}; the previous settings stay in use", error=why)


def applicable(running: Settings, read: Settings) -> tuple[Settings, list[str]]:
    """Return the settings that apply now, and names of those that need a restart."""
    fixed = _different(running, read, PROCESS_SETTINGS) - LIVE_SETTINGS
    kept = {name.lower(): getattr(running, name.lower()) for name in fixed}
    if running.output_setting != read.output_setting:  # it decides where the log goes
        fixed.add(running.output_setting or read.output_setting)
    if fixed & {"ACCOUNTS_DIR", "SHARD", "EVENTS_FILE", "ACCESS_LOG_FILE"}:
        kept["accounts"] = running.accounts
    return replace(read, **kept), sorted(fixed)


def describe(before: Settings, after: Settings) -> str:
    """Return the changes as text, without values."""
    old, new = before.accounts, after.accounts
    names = _different(before, after, PROCESS_SETTINGS)
    for account in old.keys() & new.keys():
        names |= _different(old[account], new[account], ACCOUNT_SETTINGS)
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

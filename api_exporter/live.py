"""Settings that change while the program runs: SIGHUP reads all of them again."""

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

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

ReadSettings = Callable[[], Settings | Deferred[Settings]]
"""Reads all settings, at once or in a thread."""


class LiveSettings:
    """The settings in use. A mistake in the new ones leaves all as they are.

    Args:
        read: reads all settings; the result, or its Deferred's, may be a
            ConfigurationError.
    """

    def __init__(
        self,
        settings: Settings,
        read: ReadSettings,
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
        reading = maybeDeferred(self._read)
        reading.addCallbacks(self._apply, _log_mistakes)
        reading.addErrback(partial(log.failure, "internal error in a reload"))

    def _apply(self, read: Settings) -> Deferred[None]:
        before, (after, fixed) = self._settings, applicable(self._settings, read)
        if fixed:
            log.warn(
                "{names}: a change needs a restart{accounts}",
                names=", ".join(fixed),
                accounts="" if _OTHER_ACCOUNTS.isdisjoint(fixed) else _ACCOUNTS_STAY,
            )
        log.info("reloaded settings: {changes}", changes=describe(before, after))
        self._settings = after
        self._set_log_level(after.log_level)
        return Deferred.fromCoroutine(self._accounts.change(after)).addCallback(
            self._changed
        )

    def _changed(self, changed: bool) -> None:
        if changed:
            self._on_changed()


def _log_mistakes(failure: Failure) -> None:
    failure.trap(ConfigurationError)
    assert isinstance(failure.value, ConfigurationError)
    why = "; ".join(failure.value.problems)
    log.error("{error}; the previous settings stay in use", error=why)


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

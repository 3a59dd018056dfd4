"""From environment to settings: errors are collected and contain no secret."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from api_exporter.collectors.collector import matches
from api_exporter.settings.accounts import account, accounts, secrets_of
from api_exporter.settings.definitions import (
    ACCOUNT_SETTINGS,
    PROCESS_SETTINGS,
    RETIRED,
    AccountSettings,
    Settings,
)
from api_exporter.settings.errors import ConfigurationError, quote_value
from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.settings.setting import Setting
from api_exporter.settings.token import TokenFile
from api_exporter.subjects.table import COLLECTORS

SYNONYMS = {
    "NETBIRD_API_URL": ("UPSTREAM_API_URL",),
    "NETBIRD_API_TOKEN": ("UPSTREAM_API_TOKEN", "UPSTREAM_API_TOKEN_FILE"),
}
"""Settings of netbird-api-exporter with another name here, and these names."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings; raise one ConfigurationError with all errors."""
    errors: list[ConfigurationError] = []
    process_errors: list[ConfigurationError] = []
    values = {s.name.lower(): s.read(environ, process_errors) for s in PROCESS_SETTINGS}
    secrets = secrets_of(environ)
    folder, shard = values["accounts_dir"], values["shard"]
    found: dict[str, AccountSettings] = {}
    if folder is not None:
        found = accounts(folder, shard, environ, errors, secrets)
    elif not environ.get("ACCOUNTS_DIR", "").strip():  # else an error is known
        only = account("", environ, errors)
        if only is None:
            errors[:0] = map(ConfigurationError, synonym_errors(environ))
        else:
            found = {"": only}
        if shard is not None:
            problem = "SHARD is set, but ACCOUNTS_DIR is not: set both"
            errors.append(ConfigurationError(problem))
    errors += map(ConfigurationError, retired_errors(environ))
    if not errors:
        errors += map(ConfigurationError, _unmatched(found, all_accounts=shard is None))
        errors += map(ConfigurationError, _shared_files(found.values(), values))
    if errors := errors + process_errors:
        every = ConfigurationError.joined(errors)
        # An error in the environment may concern many accounts: report it once.
        problems = dict.fromkeys(_without_secrets(p, secrets) for p in every.problems)
        raise ConfigurationError(*problems, retryable=every.retryable)
    return Settings(accounts=found, **values)


def _without_secrets(problem: str, secrets: Iterable[str]) -> str:
    """Remove secrets: one may also be in another variable or account's file."""
    for secret in secrets:
        problem = problem.replace(secret, "…")
    return problem


def synonym_errors(environ: Mapping[str, str]) -> list[str]:
    """Return an error for each name in SYNONYMS that is set without its setting."""
    return [
        f"{synonym} is a setting of netbird-api-exporter: use {' or '.join(names)}"
        for synonym, names in SYNONYMS.items()
        if environ.get(synonym, "").strip()
        and not any(environ.get(name, "").strip() for name in names)
    ]


def retired_errors(environ: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is not a setting any more: {instead}"
        for name, instead in RETIRED.items()
        if environ.get(name, "").strip()
    ]


def _unmatched(
    accounts: Mapping[str, AccountSettings], *, all_accounts: bool
) -> Iterator[str]:
    """Yield an error for each pattern that matches no metric of any account.

    Args:
        all_accounts: False if other processes have accounts with other collectors,
            which a pattern may be for.
    """
    on = frozenset[str]().union(*(a.collectors for a in accounts.values()))
    names = [
        family.name
        for collector in COLLECTORS
        if collector.name in on or not all_accounts
        for family in collector.families
    ]
    owners: dict[str, list[str]] = {}
    for name, settings in accounts.items():
        for pattern in settings.metrics_deny:
            owners.setdefault(pattern, []).append(name)
    for pattern, found in owners.items():
        if not any(matches(name, (pattern,)) for name in names):
            owner = f" of {', '.join(found)}" if len(found) < len(accounts) else ""
            yield (
                f"METRICS_DENY{owner}: {quote_value(pattern, names)} matches no metric"
                " of an enabled collector (see docs/metrics.md)"
            )


def _shared_files(
    accounts: Iterable[AccountSettings], values: Mapping[str, object]
) -> Iterator[str]:
    """Yield an error for each written file that a second setting or account uses."""
    users: dict[str, list[str]] = {}
    written: set[str] = set()
    for setting, owner, value in _used(accounts, values):
        path = value.path if isinstance(value, TokenFile) else value
        if setting.is_path and isinstance(path, Path) and path != STANDARD_OUTPUT:
            real = os.path.realpath(path)
            users.setdefault(real, []).append(f"{setting.name}{owner}")
            if setting.writes:
                written.add(real)
    for shared, found in users.items():
        if len(found) > 1 and shared in written:
            names = " and ".join(found)
            yield f"{names}: each needs a file of its own, not {shared!r}"


def _used(
    accounts: Iterable[AccountSettings], values: Mapping[str, object]
) -> Iterator[tuple[Setting, str, object]]:
    """Yield each setting, its owner as the end of a name, and the value in use."""
    for setting in PROCESS_SETTINGS:
        yield setting, "", values[setting.name.lower()]
    for one in accounts:
        owner = f" of {one.name}" if one.name else ""
        cursors = {
            "EVENTS_CURSOR_FILE": one.events_file and one.events_cursor,
            "ACCESS_LOG_CURSOR_FILE": one.access_log_file and one.access_log_cursor,
        }
        for setting in ACCOUNT_SETTINGS:
            value = getattr(one, setting.name.lower())
            yield setting, owner, cursors.get(setting.name, value)

"""From environment to settings: errors are collected and contain no secret."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from api_exporter.collectors.metric_filter import matches
from api_exporter.settings.accounts import account, accounts, secrets_of
from api_exporter.settings.definitions import (
    PROCESS_SETTINGS,
    RETIRED,
    AccountSettings,
    Settings,
)
from api_exporter.settings.errors import ConfigurationError, quote_value
from api_exporter.settings.parsers import STANDARD_OUTPUT
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
        # An error in the environment may concern many accounts: report it once.
        problems = dict.fromkeys(
            _without_secrets(p, secrets) for e in errors for p in e.problems
        )
        retryable = all(error.retryable for error in errors)
        raise ConfigurationError(*problems, retryable=retryable)
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
    """Yield an error for each written file that a second setting or account uses.

    Args:
        values: the settings of the process.
    """
    users: dict[str, list[str]] = {}
    written: set[str] = set()
    for name, path in _input_files(accounts, values):
        users.setdefault(os.path.realpath(path), []).append(name)
    for settings in accounts:
        owner = f" of {settings.name}" if settings.name else ""
        paths: list[tuple[str, Path]] = []
        if settings.events_file is not None:
            paths.append(("EVENTS_FILE", settings.events_file))
            paths.append(("EVENTS_CURSOR_FILE", settings.events_cursor))
        if settings.access_log_file is not None:
            paths.append(("ACCESS_LOG_FILE", settings.access_log_file))
            paths.append(("ACCESS_LOG_CURSOR_FILE", settings.access_log_cursor))
        for setting, path in paths:
            if path != STANDARD_OUTPUT:
                real = os.path.realpath(path)
                written.add(real)
                users.setdefault(real, []).append(f"{setting}{owner}")
    for shared, found in users.items():
        if len(found) > 1 and shared in written:
            names = " and ".join(found)
            yield f"{names}: each needs a file of its own, not {shared!r}"


def _input_files(
    accounts: Iterable[AccountSettings], values: Mapping[str, object]
) -> Iterator[tuple[str, Path]]:
    for name in ("web_config_file", "web_bearer_tokens_file"):
        if isinstance(path := values[name], Path):
            yield name.upper(), path
    for settings in accounts:
        owner = f" of {settings.name}" if settings.name else ""
        if settings.upstream_api_token_file is not None:
            yield (
                f"UPSTREAM_API_TOKEN_FILE{owner}",
                settings.upstream_api_token_file.path,
            )
        for name in ("client_cert_file", "client_key_file", "ca_file"):
            if (path := getattr(settings, f"upstream_{name}")) is not None:
                yield f"UPSTREAM_{name.upper()}{owner}", path

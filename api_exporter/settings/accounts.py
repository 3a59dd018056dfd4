"""Accounts: one from the environment, or one from each `NAME.conf` of a folder."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path

from api_exporter.netbird.resources import OFF
from api_exporter.settings import configuration_file
from api_exporter.settings.certificate import ClientCertificateFiles
from api_exporter.settings.definitions import (
    ACCOUNT_SETTINGS,
    RETIRED,
    SETTING_BY_NAME,
    SETTINGS,
    AccountSettings,
)
from api_exporter.settings.errors import ConfigurationError, unexpanded
from api_exporter.settings.parsers import STANDARD_OUTPUT, Shard
from api_exporter.settings.proxy import DIRECT, select_proxy
from api_exporter.settings.setting import absolute_path
from api_exporter.settings.spelling import closest

_FILE = re.compile(r"([A-Za-z0-9._-]+)\.conf")

NAME_RULE = "a name may contain a-z, A-Z, digits, dots, underscores and hyphens"

_ALLOWED = [setting.name for setting in ACCOUNT_SETTINGS]

_TOKEN, _TOKEN_FILE = "UPSTREAM_API_TOKEN", "UPSTREAM_API_TOKEN_FILE"
_CERTIFICATE, _KEY = "UPSTREAM_CLIENT_CERT_FILE", "UPSTREAM_CLIENT_KEY_FILE"
_INTERVALS = "REFRESH_INTERVALS"
_LOGS = ("EVENTS", "ACCESS_LOG")
_NEEDED_RESOURCES = {
    "EVENTS_FILE": "events",
    "ACCESS_LOG_FILE": "access_log",
    "ACCESS_LOG_METRICS": "access_log",
}
"""Settings that need a resource, which must not be `off`."""

_REPLACED_TOGETHER = ({_TOKEN, _TOKEN_FILE}, {_CERTIFICATE, _KEY})
"""A setting in an account's file replaces its whole group in the environment, and one
in the environment the whole group in the configuration file."""

_MIN_SECRET_LENGTH = 8
"""Characters. Shorter secrets would match too much other text."""


def secrets_of(environ: Mapping[str, str]) -> set[str]:
    """Return the values that no error may repeat."""
    values = {environ.get(s.name, "").strip() for s in SETTINGS if s.secret}
    return {
        value
        for value in values
        if len(value) >= _MIN_SECRET_LENGTH and not unexpanded(value)
    }


def account_files(folder: Path) -> tuple[dict[str, Path], list[Path]]:
    """Return the account files by name, and files with a wrong account name.

    A broken link is an account whose file is missing. Raises ConfigurationError if the
    folder cannot be listed.
    """
    found: dict[str, Path] = {}
    misnamed = []
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        problem = f"ACCOUNTS_DIR: {folder}: {error.strerror}"
        raise ConfigurationError(problem, retryable=True) from None
    for path in paths:
        if not os.path.isdir(path) and path.name.endswith(".conf"):
            if match := _FILE.fullmatch(path.name):
                found[match[1]] = path
            else:
                misnamed.append(path)
    return found, misnamed


def accounts(
    folder: Path,
    shard: Shard | None,
    environ: Mapping[str, str],
    errors: list[ConfigurationError],
    secrets: set[str],
) -> dict[str, AccountSettings]:
    """Return the accounts of this process; append to `errors` and `secrets`."""
    found, misnamed = account_files(folder)
    if not found:
        problem = f"ACCOUNTS_DIR: {folder} contains no account file NAME.conf"
        more = f" ({NAME_RULE})" if misnamed else ""
        errors.append(ConfigurationError(f"{problem}{more}", retryable=True))
    read = {
        name: _of_file(name, path, environ, errors, secrets)
        for name, path in found.items()
        if shard is None or shard.keeps(name)
    }
    kept = {name: settings for name, settings in read.items() if settings is not None}
    errors += map(ConfigurationError, _conflicting_limits(kept))
    return kept


def _of_file(
    name: str,
    path: Path,
    environ: Mapping[str, str],
    errors: list[ConfigurationError],
    secrets: set[str],
) -> AccountSettings | None:
    lines = _lines(path, errors)
    if lines is None:
        return None
    own = {line.name: line.value for line in lines.values() if line.value.strip()}
    secrets |= secrets_of(own)
    inherited = without_replaced({k: v for k, v in environ.items() if v.strip()}, own)
    for setting in ACCOUNT_SETTINGS:
        if setting.is_path and setting.name in own:
            own[setting.name] = absolute_path(str(path.parent), own[setting.name])

    def place(setting: str) -> str:
        if setting in own:
            return f"{path}:{lines[setting].number}: "
        return "" if setting in inherited else f"{path}: "

    return account(name, {**inherited, **own}, errors, place)


def without_replaced(
    settings: Mapping[str, str], stronger: Iterable[str]
) -> dict[str, str]:
    """Return the settings without those that others with precedence replace."""
    replaced = set[str]().union(*(g for g in _REPLACED_TOGETHER if g & set(stronger)))
    return {name: text for name, text in settings.items() if name not in replaced}


def _lines(
    path: Path, errors: list[ConfigurationError]
) -> dict[str, configuration_file.Line] | None:
    """Return the lines by name, or None if the file cannot be read. Append errors."""
    try:
        lines = configuration_file.lines(path, regular=True)
    except ConfigurationError as error:
        errors.append(error)
        return None
    for line in lines:
        if line.name not in _ALLOWED:
            known = line.name in SETTING_BY_NAME
            why = "does not belong to an account" if known else "is not a setting"
            nearest = closest(line.name)
            hint = f"allowed are {', '.join(_ALLOWED)}"
            if nearest is not None:
                hint = f"did you mean {nearest}?"
            if line.name in RETIRED:
                why, hint = "is not a setting any more", RETIRED[line.name]
            name = configuration_file.name_for_error(line)
            problem = f"{path}:{line.number}: {name} {why}: {hint}"
            errors.append(ConfigurationError(problem))
    return {line.name: line for line in lines}


def _conflicting_limits(accounts: Mapping[str, AccountSettings]) -> list[str]:
    """Return an error for each token whose accounts state different limits."""
    stated: dict[tuple[str, str], dict[tuple[int, int], str]] = {}
    for name, settings in accounts.items():
        if settings.upstream_rate_limit is not None:
            limits = stated.setdefault(settings.budget_key(), {})
            limits.setdefault(settings.upstream_rate_limit, name)
    return [
        "UPSTREAM_RATE_LIMIT: accounts with the same token have different limits: "
        + ", ".join(
            f"{rate}/{burst} ({name})" for (rate, burst), name in limits.items()
        )
        for limits in stated.values()
        if len(limits) > 1
    ]


def account(
    name: str,
    environ: Mapping[str, str],
    errors: list[ConfigurationError],
    place: Callable[[str], str] = lambda _: "",
) -> AccountSettings | None:
    """Return the settings of an account, or None after appending errors.

    Args:
        place: returns where a setting is from, as the beginning of an error.
    """
    own: list[ConfigurationError] = []
    values = {
        s.name.lower(): s.read(environ, own, place(s.name)) for s in ACCOUNT_SETTINGS
    }
    given = {name for name, text in environ.items() if text.strip()}
    for setting, problem in _contradictions(values, given):
        own.append(ConfigurationError(f"{place(setting)}{problem}"))
    proxy_selection = DIRECT
    if (url := values["upstream_api_url"]) is not None:
        try:
            proxy_selection = select_proxy(url, values["upstream_proxy"], environ)
        except ValueError as error:
            own.append(ConfigurationError(str(error)))
    client_certificate = None
    certificate, key = (values[setting.lower()] for setting in (_CERTIFICATE, _KEY))
    if certificate is not None and (key is not None or _KEY not in given):
        client_certificate = ClientCertificateFiles(certificate, key or certificate)
        try:
            client_certificate.read()
        except ValueError as error:
            problem = f"{place(_CERTIFICATE)}{_CERTIFICATE}: {error}"
            own.append(ConfigurationError.of(error, problem))
    errors += own
    if own:
        return None
    return AccountSettings(
        name=name,
        proxy_selection=proxy_selection,
        client_certificate=client_certificate,
        **values,
    )


def _contradictions(
    values: Mapping[str, object], given: Set[str]
) -> Iterator[tuple[str, str]]:
    """Yield the setting and the error of each missing or excluded setting."""
    if not given & {_TOKEN, _TOKEN_FILE}:
        yield (
            _TOKEN,
            f"{_TOKEN} is not set: it must be {SETTING_BY_NAME[_TOKEN].allowed},"
            f" or {_TOKEN_FILE} {SETTING_BY_NAME[_TOKEN_FILE].allowed}",
        )
    elif given >= {_TOKEN, _TOKEN_FILE}:
        both = f"{_TOKEN} and {_TOKEN_FILE} are both set: set only one of them"
        yield _TOKEN_FILE, both
    for log in _LOGS:
        file, cursor = f"{log}_FILE", f"{log}_CURSOR_FILE"
        if values[file.lower()] == STANDARD_OUTPUT and not values[cursor.lower()]:
            yield (
                cursor,
                f"{cursor} is not set: where {file} is -, it must be"
                f" {SETTING_BY_NAME[cursor].allowed}",
            )
    intervals = values["refresh_intervals"]  # None after an error
    intervals = intervals if isinstance(intervals, dict) else {}
    for setting, resource in _NEEDED_RESOURCES.items():
        if values[setting.lower()] and intervals.get(resource) == OFF:
            yield (
                _INTERVALS,
                f"{_INTERVALS}: '{resource}=off' is not allowed where {setting} is set:"
                f" {resource} must have an interval",
            )
    if values[_KEY.lower()] is not None and _CERTIFICATE not in given:
        alone = f"{_KEY} is set, but {_CERTIFICATE} is not: set both"
        yield _KEY, alone

"""Loading of settings from options, configuration file and environment."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from twisted.logger import Logger

from api_exporter.netbird.resource_state import max_age
from api_exporter.netbird.resources import OFF
from api_exporter.settings import configuration_file
from api_exporter.settings.accounts import NAME_RULE, account_files, without_replaced
from api_exporter.settings.configuration_file import name_for_error
from api_exporter.settings.definitions import (
    RETIRED,
    SETTING_BY_NAME,
    SETTINGS,
    AccountSettings,
    Settings,
)
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError, quote_value
from api_exporter.settings.inherited import is_harmful
from api_exporter.settings.options import Options
from api_exporter.settings.proxy import no_proxy_warnings
from api_exporter.settings.setting import HTTPS, absolute_path
from api_exporter.settings.spelling import closest
from api_exporter.subjects.table import COLLECTORS

log = Logger()

READABLE = "{path} is readable by every user of this machine"

_PATHS = {setting.name for setting in SETTINGS if setting.is_path}


def load(
    options: Options, overriding: Mapping[str, str], *, reload: bool = False
) -> Settings:
    """Return the settings; raises ConfigurationError.

    If they are valid, the file's variables that are no settings are copied into the
    environment of the process. Libraries read them there: SSL_CERT_FILE for one.

    Args:
        overriding: variables with precedence over all others; an empty one is not set.
        reload: refuse a configuration file that is a pipe: it was read at the start.
    """
    environ, process = _environment(options, reload=reload)
    settings = read_settings({**environ, **overriding})
    authorities = (process or os.environ).get("SSL_CERT_FILE", "")
    if _is_pipe(authorities):  # OpenSSL would wait for it in the event loop
        raise ConfigurationError(
            f"SSL_CERT_FILE: {authorities}: the file is not a regular file"
        )
    if process is not None:
        for name in os.environ.keys() - process.keys():  # a former load had it
            del os.environ[name]
        os.environ.update(process)
    _warn(settings, environ)
    return settings


def _warn(settings: Settings, environ: Mapping[str, str]) -> None:
    """Log probable mistakes that do not prevent a start."""
    for name, setting in ((n, s) for n in environ if (s := closest(n))):
        text = "{name} in the environment is not a setting: did you mean {setting}?"
        log.warn(text, name=name, setting=setting)
    for line in (*unused_warnings(settings), *no_proxy_warnings(environ)):
        log.warn("{text}", text=line)
    if settings.accounts_dir is not None:
        found, misnamed = account_files(settings.accounts_dir)
        for path in misnamed:
            text = f"{{path}} is not an account file and is ignored: {NAME_RULE}"
            log.warn(text, path=repr(str(path)))
        for name, path in found.items():
            if name in settings.accounts and configuration_file.readable_by_all(path):
                log.warn(READABLE, path=str(path), account=name)
    for path in sorted(set(_secret_files(settings))):
        if configuration_file.readable_by_all(path):
            log.warn(READABLE, path=str(path))
    authorities = os.environ.get("SSL_CERT_FILE", "")
    is_readable = os.path.isfile(authorities) and os.access(authorities, os.R_OK)
    if authorities and not is_readable:
        text = "SSL_CERT_FILE names {path}, which cannot be read"
        log.warn(text, path=quote_value(authorities))


def _secret_files(settings: Settings) -> Iterator[Path]:
    if settings.web_bearer_tokens_file is not None:
        yield settings.web_bearer_tokens_file
    for account in settings.accounts.values():
        if account.upstream_api_token_file is not None:
            yield account.upstream_api_token_file.path
        if account.client_certificate is not None:
            yield account.client_certificate.key


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _environment(
    options: Options, *, reload: bool
) -> tuple[Mapping[str, str], Mapping[str, str] | None]:
    """Return the settings, and the environment for libraries; None without a file."""
    if options["config"] is None:
        return _with_absolute_paths(options.environ, options.folder), None
    path = Path(options.folder, options["config"])
    lines = configuration_file.lines(path, regular=reload)
    found = {line.name: line.value for line in lines}
    problems = [
        f"{path}:{line.number}: {line.name} is not a setting: did you mean {setting}?"
        for line in lines
        if (setting := closest(line.name)) is not None
    ]
    if problems:
        raise ConfigurationError(*problems)
    if configuration_file.readable_by_all(path):
        log.warn(READABLE, path=str(path))
    for text in _doubtful(path, lines):
        log.warn("{text}", text=text)
    others = {
        name: text
        for name, text in found.items()
        if name not in SETTING_BY_NAME and not is_harmful(name)
    }
    process = configuration_file.with_defaults_from(options.environ, others)
    given = [name for name, text in options.environ.items() if text.strip()]
    kept = without_replaced(found, given)
    environ = configuration_file.with_defaults_from(options.environ, kept)
    return _with_absolute_paths(environ, options.folder), process


_OF_LIBRARIES = re.compile(r"(?i:https?_proxy|no_proxy)|SSL_CERT_.*")
"""Variables that a configuration file may contain, although they are no settings."""


def _doubtful(path: Path, lines: Iterable[configuration_file.Line]) -> Iterator[str]:
    """Yield a line for each setting that is set twice, and each unknown name."""
    numbers: dict[str, int] = {}
    for line in lines:
        name, place = name_for_error(line), f"{path}:{line.number}"
        if line.name in numbers:
            yield (
                f"{place}: {name} is also set in line {numbers[line.name]}: the last"
                " one counts"
            )
        numbers[line.name] = line.number
        if not (
            line.name in SETTING_BY_NAME
            or line.name in RETIRED
            or _OF_LIBRARIES.fullmatch(line.name)
        ):
            near = get_close_matches(line.name.upper(), SETTING_BY_NAME, 1)
            hint = "".join(f": did you mean {setting}?" for setting in near)
            yield f"{place}: {name} is not a setting{hint}"


def _with_absolute_paths(environ: Mapping[str, str], folder: str) -> Mapping[str, str]:
    return {
        name: absolute_path(folder, text) if name in _PATHS else text
        for name, text in environ.items()
    }


def _is_set(owner: Settings | AccountSettings, name: str) -> bool:
    setting = SETTING_BY_NAME[name]
    return bool(getattr(owner, name.lower()) != setting.parse(setting.default or ""))


def _is_met(owner: Settings | AccountSettings, need: str) -> bool:
    if isinstance(owner, AccountSettings) and need == HTTPS:
        return owner.upstream_api_url.startswith("https:")
    return _is_set(owner, need)


def _has_metrics(account: AccountSettings) -> bool:
    permits = account.metric_filter().permits
    families = (c.families for c in COLLECTORS if c.name in account.collectors)
    return any(map(permits, chain.from_iterable(families)))


def unused_warnings(settings: Settings) -> Iterator[str]:
    """Yield a line for each setting without an effect in any account."""
    accounts = settings.accounts.values()
    for setting in filter(lambda setting: setting.needs, SETTINGS):
        name, needs = setting.name, setting.needs
        owners = [settings] if hasattr(settings, name.lower()) else accounts
        given = [owner for owner in owners if _is_set(owner, name)]
        if given and not any(_is_met(owner, need) for owner in given for need in needs):
            yield f"{name} has no effect: it needs {' or '.join(needs)}"
    requested = {r.name for a in accounts for r in a.select({}).resources}
    intervals = {
        name: None
        for account in accounts
        for name, interval in account.refresh_intervals.items()
        if interval != OFF and name not in requested
    }
    for name in intervals:
        yield (
            f"REFRESH_INTERVALS: {name} has no effect: the other settings do not"
            " need this resource"
        )
    too_short = {
        age: max_age(0, age)
        for account in accounts
        if (age := account.metrics_max_age) is not None
    }
    for age, used in too_short.items():
        if age < used:
            yield (
                f"METRICS_MAX_AGE: {age:g}s is too short: metrics expire after"
                f" {used:g}s or later"
            )
    if accounts and not any(map(_has_metrics, accounts)):
        yield "METRICS_DENY leaves out all metrics of the network"

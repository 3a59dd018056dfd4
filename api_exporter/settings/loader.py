"""Loading of settings from options, configuration file and environment."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twisted.logger import Logger

from api_exporter.settings import configuration_file
from api_exporter.settings.accounts import NAME_RULE, account_files, without_replaced
from api_exporter.settings.definitions import SETTING_BY_NAME, SETTINGS, Settings
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.options import Options
from api_exporter.settings.spelling import closest, misspelt
from api_exporter.settings.unused import unused_warnings

log = Logger()

MISSPELT = "{name} in the environment is not a setting: did you mean {setting}?"

MISNAMED = f"{{path}} is not an account file and is ignored: {NAME_RULE}"

READABLE = "{path} is readable by every user of this machine"

NO_AUTHORITIES = "SSL_CERT_FILE names {path}, which cannot be read"

_PATHS = {setting.name for setting in SETTINGS if setting.is_path}


def load(options: Options, overriding: Mapping[str, str]) -> Settings:
    """Return the settings; raises ConfigurationError.

    Args:
        overriding: variables with precedence over all others; an empty one is not set.
    """
    environ, empty = _environment(options)
    try:
        settings = read_settings({**environ, **overriding})
    except ConfigurationError as error:
        # Another program may be replacing an empty configuration file.
        retryable = error.retryable or empty
        raise ConfigurationError(*error.problems, retryable=retryable) from None
    _warn(settings, environ)
    return settings


def _warn(settings: Settings, environ: Mapping[str, str]) -> None:
    """Log probable mistakes that do not prevent a start."""
    for name, setting in misspelt(environ).items():
        log.warn(MISSPELT, name=name, setting=setting)
    for line in unused_warnings(settings):
        log.warn("{text}", text=line)
    if settings.accounts_dir is not None:
        found, misnamed = account_files(settings.accounts_dir)
        for path in misnamed:
            log.warn(MISNAMED, path=repr(str(path)))
        for name, path in found.items():
            if name in settings.accounts and configuration_file.readable_by_all(path):
                log.warn(READABLE, path=str(path), account=name)
    for path in sorted(set(_secret_files(settings))):
        if configuration_file.readable_by_all(path):
            log.warn(READABLE, path=str(path))
    authorities = os.environ.get("SSL_CERT_FILE")
    if authorities and not os.access(authorities, os.R_OK):
        log.warn(NO_AUTHORITIES, path=authorities)


def _secret_files(settings: Settings) -> Iterator[Path]:
    if settings.web_bearer_tokens_file is not None:
        yield settings.web_bearer_tokens_file
    for account in settings.accounts.values():
        if account.upstream_api_token_file is not None:
            yield account.upstream_api_token_file.path
        if account.identity is not None:
            yield account.identity.key


def load_only(options: Options, *names: str) -> list[Any]:
    """Return the values of these settings only; raises ConfigurationError."""
    environ, _ = _environment(options)
    errors: list[ConfigurationError] = []
    values = [SETTING_BY_NAME[name].read(environ, errors) for name in names]
    if errors:
        raise ConfigurationError(*(p for error in errors for p in error.problems))
    return values


def _environment(options: Options) -> tuple[Mapping[str, str], bool]:
    """Return the environment above the configuration file, and whether that is empty.

    Variables that are no settings are copied into the environment of the process,
    because libraries read them there: SSL_CERT_FILE for one.
    """
    if options["config"] is None:
        return _with_absolute_paths(options.environ, options.folder), False
    path = Path(options.folder, options["config"])
    lines = configuration_file.lines(path)
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
    others = {name: text for name, text in found.items() if name not in SETTING_BY_NAME}
    environ = configuration_file.with_defaults_from(options.environ, others)
    for name in os.environ.keys() - environ.keys():  # the file had it at a former load
        del os.environ[name]
    os.environ.update(environ)
    given = [name for name, text in options.environ.items() if text.strip()]
    kept = without_replaced(found, given)
    settings = configuration_file.with_defaults_from(options.environ, kept)
    return _with_absolute_paths(settings, options.folder), not found


def _with_absolute_paths(environ: Mapping[str, str], folder: str) -> Mapping[str, str]:
    return {
        name: os.path.join(folder, text.strip())
        if name in _PATHS and text.strip() not in {"", "-"}
        else text
        for name, text in environ.items()
    }

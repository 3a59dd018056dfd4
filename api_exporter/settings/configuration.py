"""What the program is told: options, configuration file and environment, checked."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.logger import Logger

from api_exporter.settings import file
from api_exporter.settings.accounts import NAMES, files, misnamed
from api_exporter.settings.options import Options
from api_exporter.settings.reading import read
from api_exporter.settings.setting import Setting, SettingsError
from api_exporter.settings.values import Settings

log = Logger()

MISNAMED = f"{{path}} is no account, and its network is not watched: {NAMES}"

READABLE = "{path} can be read by everybody on this machine"
NO_AUTHORITIES = "SSL_CERT_FILE names {path}, which cannot be read"


class Refused(Exception):
    """Why the program does not start: everything that is wrong, a line each.

    Attributes:
        lasting: whether it stays wrong until somebody changes it.
    """

    def __init__(self, problems: list[str], *, lasting: bool) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.lasting = lasting


def configured(options: Options, overriding: Mapping[str, str]) -> Settings:
    """Read the configuration file and the environment; raises Refused.

    What the file sets gets into the environment of the process, because libraries read
    theirs there, too: SSL_CERT_FILE for one.

    Args:
        overriding: variables that win over both; an empty one counts as not set.
    """
    empty = not _loaded(options)
    try:
        settings = read({**os.environ, **overriding})
    except SettingsError as error:
        # Somebody may be about to write an empty file.
        lasting = error.lasting and not empty
        raise Refused(error.problems, lasting=lasting) from None
    if settings.accounts_dir is not None:
        for path in misnamed(settings.accounts_dir):
            log.warn(MISNAMED, path=repr(str(path)))
        for name, path in files(settings.accounts_dir).items():
            if name in settings.accounts and file.readable_by_all(path):
                log.warn(READABLE, path=str(path), account=name)
    for path in sorted(_secret(settings)):
        if file.readable_by_all(path):
            log.warn(READABLE, path=str(path))
    authorities = os.environ.get("SSL_CERT_FILE")
    if authorities and not os.access(authorities, os.R_OK):
        log.warn(NO_AUTHORITIES, path=authorities)
    return settings


def _secret(settings: Settings) -> set[Path]:
    """Files with a secret in them that settings name."""
    paths = {settings.web_bearer_tokens_file}
    for account in settings.accounts.values():
        if account.upstream_api_token_file is not None:
            paths.add(account.upstream_api_token_file.path)
        if account.reach.identity is not None:
            paths.add(account.reach.identity.key)
    return {path for path in paths if path is not None}


def chosen(options: Options, *settings: Setting[object]) -> dict[str, Any]:
    """Values of these settings alone, by their names; raises Refused."""
    _loaded(options)
    problems: list[str] = []
    values = {s.name: s.read(os.environ, problems) for s in settings}
    if problems:
        raise Refused(problems, lasting=True)
    return values


def _loaded(options: Options) -> bool:
    """Whether the configuration file, if there is any, says anything."""
    return options["config"] is None or bool(_load(Path(options["config"])))


def _load(path: Path) -> Mapping[str, str]:
    try:
        found = file.load(path)
    except file.ConfigurationError as error:
        raise Refused(error.problems, lasting=error.lasting) from None
    os.environ.update(file.below(os.environ, found))
    if file.readable_by_all(path):
        log.warn(READABLE, path=str(path))
    return found

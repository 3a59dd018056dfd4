"""From the environment to the settings: all mistakes at once, and no secret told."""

from collections.abc import Mapping
from pathlib import Path

from api_exporter.settings.accounts import accounts
from api_exporter.settings.families import unmatched
from api_exporter.settings.files import shared
from api_exporter.settings.setting import Passing, SettingsError
from api_exporter.settings.synonyms import misnamed
from api_exporter.settings.table import ACCOUNTS_DIR
from api_exporter.settings.values import (
    AccountSettings,
    Settings,
    account,
    process,
    secrets_of,
    without_secrets,
)


def read(environ: Mapping[str, str]) -> Settings:
    """Check everything, then raise SettingsError once for all that is wrong."""
    problems: list[str] = []
    others: list[str] = []
    values = process(environ, others)
    secrets = secrets_of(environ)
    folder, shard = values["accounts_dir"], values["shard"]
    found: dict[str, AccountSettings] = {}
    if isinstance(folder, Path):
        found = accounts(folder, shard, environ, problems, secrets)
    elif not environ.get(ACCOUNTS_DIR.name, "").strip():  # else that is the mistake
        only = account("", environ, problems)
        if only is None:
            problems[:0] = misnamed(environ)
        found = {} if only is None else {"": only}
        if shard is not None:
            problems.append(
                "SHARD is set, but not ACCOUNTS_DIR: it shares accounts out"
            )
    if not problems:
        problems += unmatched(found, all_accounts=shard is None)
        problems += shared(found.values())
    if problems or others:
        # Once each: a mistake of the environment may be many accounts'.
        told = list(dict.fromkeys(without_secrets(problems + others, secrets)))
        lasting = not all(isinstance(problem, Passing) for problem in told)
        raise SettingsError(told, lasting=lasting)
    return Settings(accounts=found, **values)

"""The accounts of a folder: a `NAME.conf` each, above what the environment says."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from api_exporter.settings import file
from api_exporter.settings.setting import Passing, masked
from api_exporter.settings.shard import Shard
from api_exporter.settings.table import OF_ACCOUNT, SETTINGS, TOGETHER
from api_exporter.settings.values import AccountSettings, account, secrets_of

_FILE = re.compile(r"([A-Za-z0-9._-]+)\.conf")

NAMES = "a name may hold a-z, A-Z, digits, dots, underscores and hyphens"

_ALLOWED = {setting.name: setting for setting in OF_ACCOUNT}
_KNOWN = {setting.name for setting in SETTINGS}


def files(folder: Path) -> dict[str, Path]:
    """By the account's name. What has another name, or is a folder, is none.

    A link that leads nowhere is an account whose file is missing.
    """
    named = [(_FILE.fullmatch(path.name), path) for path in sorted(folder.iterdir())]
    return {m[1]: path for m, path in named if m and not os.path.isdir(path)}


def misnamed(folder: Path) -> list[Path]:
    """Files that seem to be meant as accounts, and are none."""
    return [
        path
        for path in sorted(folder.glob("*.conf"))
        if not (_FILE.fullmatch(path.name) or os.path.isdir(path))
    ]


def accounts(
    folder: Path,
    shard: Shard | None,
    environ: Mapping[str, str],
    problems: list[str],
    secrets: set[str],
) -> dict[str, AccountSettings]:
    """Those that this process keeps; more problems and secrets where there are any."""
    found = files(folder)
    if not found:
        problem = f"ACCOUNTS_DIR: {folder} holds no account, which is a NAME.conf"
        more = f" ({NAMES})" if misnamed(folder) else ""
        problems.append(Passing(f"{problem}{more}"))
    read = {
        name: _account(name, path, environ, problems, secrets)
        for name, path in found.items()
        if shard is None or shard.keeps(name)
    }
    kept = {name: settings for name, settings in read.items() if settings is not None}
    problems += _disagreeing(kept)
    return kept


def _account(
    name: str,
    path: Path,
    environ: Mapping[str, str],
    problems: list[str],
    secrets: set[str],
) -> AccountSettings | None:
    lines = _lines(path, problems)
    if lines is None:
        return None
    own = {line.name: line.value for line in lines.values() if line.value.strip()}
    secrets |= secrets_of(own)
    inherited = {k: v for k, v in environ.items() if v.strip()}
    for together in TOGETHER:
        names = {setting.name for setting in together}
        if names & own.keys():
            inherited = {k: v for k, v in inherited.items() if k not in names}
    for setting in OF_ACCOUNT:
        if setting.path and own.get(setting.name, "-").strip() != "-":
            own[setting.name] = str(path.parent / own[setting.name].strip())

    def place(setting: str) -> str:
        if setting in own:
            return f"{path}:{lines[setting].number}: "
        return "" if setting in inherited else f"{path}: "

    return account(name, {**inherited, **own}, problems, place)


def _lines(path: Path, problems: list[str]) -> dict[str, file.Line] | None:
    """By name, or None with more problems. A mistaken line is a problem, too."""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe may never end
        problems.append(f"{path}: it is no regular file")
        return None
    try:
        lines = file.lines(path)
    except file.ConfigurationError as error:
        wrap = str if error.lasting else Passing
        problems += map(wrap, error.problems)
        return None
    for line in lines:
        if line.name not in _ALLOWED:
            known = line.name in _KNOWN
            why = "does not belong to an account" if known else "is no setting"
            problems.append(
                f"{path}:{line.number}: {_shown(line)} {why}: allowed are"
                f" {', '.join(_ALLOWED)}"
            )
    return {line.name: line for line in lines}


def _shown(line: file.Line) -> str:
    """The name, unless it may be a token: many of them end in `=`."""
    alone = not line.value.strip("=") and not file.SETTING.fullmatch(line.name)
    return "the name" if alone else masked(line.name)


def _disagreeing(accounts: Mapping[str, AccountSettings]) -> list[str]:
    """Accounts with one token have one limit, which each of them may state."""
    stated: dict[tuple[str, str], dict[tuple[int, int], str]] = {}
    for name, settings in accounts.items():
        if settings.upstream_rate_limit is not None:
            limits = stated.setdefault(settings.grant(), {})
            limits.setdefault(settings.upstream_rate_limit, name)
    return [
        "UPSTREAM_RATE_LIMIT: accounts with one token state different ones: "
        + ", ".join(
            f"{rate}/{burst} ({name})" for (rate, burst), name in limits.items()
        )
        for limits in stated.values()
        if len(limits) > 1
    ]

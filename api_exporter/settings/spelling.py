"""Misspelt settings: the setting that is nearest to an unknown name."""

import re
from collections.abc import Iterable

from api_exporter.settings.definitions import SETTING_BY_NAME

_MAX_SHORT_LENGTH = 8
"""Maximum length of a name in which only one mistake is allowed."""


def closest(name: str) -> str | None:
    """Return the setting that is at most two mistakes from a name, or None."""
    if name in SETTING_BY_NAME:
        return None
    return next((s for s in SETTING_BY_NAME if _is_near(name.upper(), s)), None)


def misspelt(names: Iterable[str]) -> dict[str, str]:
    """Return misspelt names and the setting that each is near to."""
    return {name: setting for name in names if (setting := closest(name)) is not None}


def _is_near(name: str, setting: str) -> bool:
    limit = 1 if len(setting) <= _MAX_SHORT_LENGTH else 2
    if abs(len(name) - len(setting)) > limit:
        return False
    if len(set(name) ^ set(setting)) > 2 * limit:  # much faster than the distance
        return False
    return distance(name, setting) <= limit


def distance(a: str, b: str) -> int:
    """Return the optimal string alignment distance of two words.

    It counts letters to add, remove or replace, and neighbours to swap.
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(b, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and (letter, a[i - 2]) == (b[j - 2], other):
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]


_FOREIGN_OPTIONS = {
    "web.listen-address": "LISTEN_ADDRESS",
    "web.telemetry-path": "METRICS_PATH",
    "web.config.file": "WEB_CONFIG_FILE",
    "web.max-requests": "MAX_CONNECTIONS",
    **dict.fromkeys(("port", "p", "listen", "bind"), "LISTEN_ADDRESS=:PORT"),
    **dict.fromkeys(("debug", "verbose"), "LOG_LEVEL=debug"),
    "url": "UPSTREAM_API_URL",
    "token": "UPSTREAM_API_TOKEN",
    **dict.fromkeys(("V", "v"), "--version"),
    "config.file": "--config",
    "rules": "deploy/prometheus/rules.yml and alerts.yml as they are: the exporter"
    " applies THRESHOLDS_FILE to the findings that they read",
}
"""Options of other programs, and the setting or option for each here."""


def hint_for_options(arguments: Iterable[str]) -> str:
    """Return a sentence about the first option that is a setting here, or ""."""
    for argument in arguments:
        name = argument.partition("=")[0].lstrip("-")
        words = re.sub(r"[.-]", "_", name).upper()
        found = _FOREIGN_OPTIONS.get(name) or (
            words if words in SETTING_BY_NAME else ""
        )
        if argument.startswith("-") and found[:1].isupper():
            return (
                f": use the setting {found}, in the environment or a file of --config"
            )
        if argument.startswith("-") and found:
            return f": use {found}"
    return ""

"""Misspelt settings: the setting that is nearest to an unknown name."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from api_exporter.settings.definitions import SETTING_BY_NAME


def closest(name: str) -> str | None:
    """Return the setting that a name is probably meant for, or None.

    Two mistakes in a long name are found, and one in a short name.
    """
    if name in SETTING_BY_NAME:
        return None
    likeness = 0.8 if len(name) <= _MAX_SHORT_LENGTH else 0.86
    found = get_close_matches(name.upper(), SETTING_BY_NAME, 1, likeness)
    return found[0] if found else None


_MAX_SHORT_LENGTH = 8

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
        found = _FOREIGN_OPTIONS.get(name, words if words in SETTING_BY_NAME else "")
        if argument.startswith("-") and found[:1].isupper():
            where = "in the environment or a file of --config"
            return f": use the setting {found}, {where}"
        if argument.startswith("-") and found:
            return f": use {found}"
    return ""

"""Texts of all settings: the example file of `--settings`, and the end of `--help`."""

import re
from collections.abc import Iterator
from textwrap import wrap

from api_exporter.settings.definitions import SECTIONS
from api_exporter.settings.setting import Setting

_HEAD = """\
# Settings of api-exporter, for /etc/api-exporter/config (mode 640). A reload applies a
# change of most settings, a restart of all. Write NAME=value without spaces around "=":
# a shell, systemd and --config read it alike. Commented lines show the defaults. A
# setting without one is not set.
"""

_REQUIRED = {"UPSTREAM_API_URL", "UPSTREAM_API_TOKEN"}
"""Settings that the example leaves empty: the exporter does not start without them."""


def plain(words: str) -> str:
    """Return Markdown without links: their words alone, or nothing for an aside."""
    words = re.sub(r" ?\(\[[^]]*\]\([^)]*\)\)", "", words)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", words)


def example_file() -> str:
    """Return a file with all settings; those that are not required are comments."""
    return _HEAD + "".join(
        f"\n# ---- {title} ----\n" + "".join(map(_lines, settings))
        for title, settings in SECTIONS.items()
    )


def _lines(setting: Setting) -> str:
    comment = "".join(
        f"# {line}\n"
        for text in (setting.meaning, f"Allowed: {setting.allowed}.")
        for line in wrap(plain(text), 86, break_on_hyphens=False)
    )
    mark = "" if setting.name in _REQUIRED else "#"
    return f"\n{comment}{mark}{setting.name}={setting.default or ''}\n"


def overview() -> Iterator[str]:
    for title, settings in SECTIONS.items():
        yield f"\n{title}:"
        for setting in settings:
            first, stop, _ = plain(setting.meaning).partition(". ")
            yield f"  {setting.name:<30}  {first}{stop.strip()}".replace("`", "")

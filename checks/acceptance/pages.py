"""The pages of `docs/install`, whose commands the checks run unchanged."""

import re
from pathlib import Path

from checks.acceptance.check import ROOT
from tests.deploy.programs import blocks

INSTALL = ROOT / "docs" / "install"

# Placeholders for the reader's own values.
URL, TOKEN = "https://api.netbird.io", "nbp_replace_this"


_TOOLS = {"sudo": 'exec env "$@"\n', "sudoedit": 'cat /settings >"$1"\n'}
"""Programs that the pages' commands call, without a dialogue."""


def stub(folder: Path) -> None:
    """Write these programs into a folder. `sudoedit` copies `/settings`."""
    for name, text in _TOOLS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)


def credential(page: str, token: str) -> str:
    """Return the commands that store the token in a file, without a prompt."""
    return given(script(page, "The token as a credential"), token)


def given(commands: str, token: str) -> str:
    """Return the same commands with the input they read from a terminal."""
    return re.sub(
        r"^(.* /dev/stdin )", rf"echo {token} | \1", commands, flags=re.MULTILINE
    )


def checkout(page: str) -> str:
    """Return the command that a page gives for a checkout."""
    text = (INSTALL / page).read_text()
    [found] = re.findall(r"\A# .*\n\nFrom a checkout: `([^`]+)`", text)
    return str(found)


def script(page: str, heading: str = "", number: int = 0) -> str:
    """Return a block of commands below a heading, or of the page's beginning."""
    return f"set -e\n{block(page, heading, number)}"


def block(page: str, heading: str = "", number: int = 0, language: str = "sh") -> str:
    """Return a code block unchanged."""
    return blocks(f"install/{page}", language, heading)[number]

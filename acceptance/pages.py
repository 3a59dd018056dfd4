"""The pages of `docs/install`, whose commands are run as they stand there."""

import re
from pathlib import Path

from acceptance.check import ROOT, Failed

INSTALL = ROOT / "docs" / "install"

# What stands for the reader's own.
URL, TOKEN = "https://api.netbird.io", "nbp_replace_this"


_TOOLS = {
    "sudo": 'exec env "$@"\n',
    "sudoedit": 'cat /settings >"$1"\n',
}
"""What the pages' commands go through, without a person."""


def stub(folder: Path) -> None:
    """Put them there; `/settings` is what a person writes."""
    for name, text in _TOOLS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)


def credential(page: str, token: str) -> str:
    """The commands by which the token gets a file, without somebody who pastes it."""
    return given(script(page, "The token as a credential"), token)


def given(commands: str, token: str) -> str:
    """The same commands, with what they wait for."""
    return re.sub(
        r"^(.* /dev/stdin )", rf"echo {token} | \1", commands, flags=re.MULTILINE
    )


def checkout(page: str) -> str:
    """What a page says to do from a checkout."""
    text = (INSTALL / page).read_text()
    [found] = re.findall(r"\A# .*\n\nFrom a checkout: `([^`]+)`", text)
    return str(found)


def script(page: str, heading: str = "", number: int = 0) -> str:
    """The commands of one block: below a heading, or of the page's beginning."""
    return f"set -e\n{block(page, heading, number)}"


def block(page: str, heading: str = "", number: int = 0, language: str = "sh") -> str:
    """One block of a language, as it stands there."""
    text = (INSTALL / page).read_text()
    parts = re.split(r"^##+ (.*)\n", text, flags=re.MULTILINE)
    sections = {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
    if heading not in sections:
        raise Failed(f"{page}: no heading {heading!r}")
    blocks = re.findall(
        rf"^```{language}\n(.*?)^```", sections[heading], re.MULTILINE | re.DOTALL
    )
    if len(blocks) <= number:
        raise Failed(f"{page}: no {language} below {heading!r}")
    return str(blocks[number])

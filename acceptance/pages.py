"""The pages of `docs/install`, whose commands are run as they stand there."""

import re

from acceptance.check import ROOT, Failed

INSTALL = ROOT / "docs" / "install"

# What stands for the reader's own.
URL, TOKEN = "https://api.netbird.io", "nbp_replace_this"


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

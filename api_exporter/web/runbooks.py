"""`/runbooks`: the steps for each alert, also for networks without internet."""

import re
import sys
from pathlib import Path

from twisted.web.server import Request

from api_exporter.serving.page import ReadOnlyPage
from api_exporter.web.context import RUNBOOKS_PATH
from api_exporter.web.status import pages

RUNBOOKS_FILE = Path(__file__).parents[1] / "doc/runbooks.html"
"""The page as made by the build. It has no style; `Runbooks` adds it."""

UNPACKED = str(getattr(sys, "_MEIPASS", ""))
"""The folder of an executable's unpacked files, "" without one."""

MISSING_MESSAGE = "this build has no runbooks: `make run` makes them\n"


class Runbooks(ReadOnlyPage):
    """The runbooks of the build."""

    def page(self, request: Request) -> str:
        if not RUNBOOKS_FILE.exists():
            request.setResponseCode(404)
            return MISSING_MESSAGE
        pages.set_security_headers(request)
        request.setHeader(b"Content-Type", b"text/html; charset=utf-8")
        style = f"<style>{pages.STYLE}</style>\n</head>"
        return RUNBOOKS_FILE.read_text(encoding="utf-8").replace("</head>", style, 1)


def runbooks_address() -> str:
    """Return the file of the runbooks, or the path of the page.

    The path is for a one-file executable, which removes its files when it ends.
    """
    if not UNPACKED or Path(sys.executable).parent in Path(UNPACKED).parents:
        return str(RUNBOOKS_FILE)
    return f"/{RUNBOOKS_PATH}"


def runbook_text(name: str) -> str:
    """Return a runbook for a terminal; raise ValueError with the names that exist."""
    source = RUNBOOKS_FILE.with_suffix(".md")
    if not source.exists():
        raise ValueError(MISSING_MESSAGE.strip())
    _, *sections = source.read_text(encoding="utf-8").split("\n## ")
    texts = {section.split("\n", 1)[0]: section for section in sections}
    for title, text in texts.items():
        if title.lower() == name.lower():
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)  # without links
            return words.replace("**", "").rstrip() + "\n"
    allowed = ", ".join(texts)
    raise ValueError(f"{name!r} is no runbook; it must be one of {allowed}")

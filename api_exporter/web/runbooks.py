"""`/runbooks`: the steps for each alert, also for networks without internet."""

import sys
from pathlib import Path

from twisted.web.server import Request

from api_exporter.serving.page import TextPage
from api_exporter.web.status import document

RUNBOOKS_PATH = "runbooks"
"""The path of the page, relative to the status page."""

RUNBOOKS_FILE = Path(__file__).parents[1] / "doc/runbooks.html"
"""The page as made by the build. It has no style; `Runbooks` adds it."""

UNPACKED = str(getattr(sys, "_MEIPASS", ""))
"""The folder of an executable's unpacked files, "" without one."""

MISSING_MESSAGE = "This build has no runbooks: `make run` makes them.\n"


class Runbooks(TextPage):
    """The runbooks of the build."""

    def text(self, request: Request) -> str:
        if not RUNBOOKS_FILE.exists():
            request.setResponseCode(404)
            return MISSING_MESSAGE
        document.set_security_headers(request)
        request.setHeader(b"Content-Type", b"text/html; charset=utf-8")
        style = f"<style>{document.STYLE}</style>\n</head>"
        return RUNBOOKS_FILE.read_text(encoding="utf-8").replace("</head>", style, 1)


def runbooks_address() -> str:
    """Return the file of the runbooks, or the path of the page.

    The path is for a one-file executable, which removes its files when it ends.
    """
    if not UNPACKED or Path(sys.executable).parent in Path(UNPACKED).parents:
        return str(RUNBOOKS_FILE)
    return f"/{RUNBOOKS_PATH}"

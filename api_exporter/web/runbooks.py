"""`/runbooks`: what to do about each alert, for those who have no internet."""

import sys
from pathlib import Path

from twisted.web.server import Request

from api_exporter.serving.page import TextPage
from api_exporter.web.status import document

RUNBOOKS = "runbooks"
"""Its path, as it stands in the status page's links."""

FILE = Path(__file__).parents[1] / "doc/runbooks.html"
"""Made when the program is built; without style, which the page alone has."""

UNPACKED = str(getattr(sys, "_MEIPASS", ""))
"""Where an executable has its files."""

MISSING = "This build has no runbooks: `make run` makes them.\n"


class Runbooks(TextPage):
    """The file that came with the program."""

    def text(self, request: Request) -> str:
        if not FILE.exists():
            request.setResponseCode(404)
            return MISSING
        document.protect(request)
        request.setHeader(b"Content-Type", b"text/html; charset=utf-8")
        style = f"<style>{document.STYLE}</style>\n</head>"
        return FILE.read_text(encoding="utf-8").replace("</head>", style, 1)


def installed() -> str:
    """Where they are on this machine. One file unpacks itself only while it runs."""
    if not UNPACKED or Path(sys.executable).parent in Path(UNPACKED).parents:
        return str(FILE)
    return f"/{RUNBOOKS}"

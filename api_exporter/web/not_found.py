"""404: a page for all other paths, which lists the pages."""

from collections.abc import Iterable
from urllib.parse import unquote

from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.serving.page import error_line
from api_exporter.web.context import PROFILES_PATH

_OTHER_NAMES = {
    "-/healthy": "health",
    "healthz": "health",
    "livez": "health",
    "-/ready": "ready",
    "readyz": "ready",
    "status": "status.json",
}
"""Paths of other programs, and the pages in their place."""


class NotFound(Resource):
    """404 in plain text, for all methods."""

    isLeaf = True

    def __init__(self, paths: Iterable[str], metrics_path: str) -> None:
        super().__init__()
        self._paths = tuple(sorted(paths))
        self._metrics_path = metrics_path.strip("/")

    def render(self, request: Request) -> bytes:
        path = unquote(request.path.decode("utf-8", "replace")).strip("/")
        listed = " ".join(f"/{path}" for path in self._paths)
        line = f"There is no page {f'/{path}'[:60]!a}.{self._reason(path)}"
        return error_line(request, 404, f"{line}\nThe pages are: {listed}")

    def _reason(self, path: str) -> str:
        if path in self._paths:
            return f" Write /{path} without a slash at its end."
        if path == "metrics":
            return f" METRICS_PATH is /{self._metrics_path}."
        if path in {"lookup", "lookup.json", "lookup.csv"}:
            return " It needs the setting LOOKUP=true."
        if path == "sd/accounts":
            return " It needs several accounts (ACCOUNTS_DIR)."
        if f"{path}/".startswith(f"{PROFILES_PATH}/"):
            return " It needs the option --enable-pprof."
        if path in _OTHER_NAMES:
            return f" Request /{_OTHER_NAMES[path]}."
        return ""

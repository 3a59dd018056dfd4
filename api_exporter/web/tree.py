"""The table of pages, by path."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from api_exporter.serving.page import error_line
from api_exporter.web.account_page import Networks
from api_exporter.web.context import PROFILES_PATH, RUNBOOKS_PATH, SiteContext
from api_exporter.web.discovery import AccountTargets, Discovery
from api_exporter.web.metrics import Metrics
from api_exporter.web.probes import Health, Ready, Schema, StatusJson
from api_exporter.web.runbooks import Runbooks
from api_exporter.web.status.pages import FINDINGS_PATH, Findings, Status

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
        path = unquote(request.path.decode("utf-8", "replace"))
        listed = " ".join(f"/{path}" for path in self._paths)
        line = f"There is no page {path[:60]!a}.{self._reason(path.strip('/'))}"
        return error_line(request, 404, f"{line}\nThe pages are: {listed}")

    def _reason(self, path: str) -> str:
        if path in self._paths:
            return f" Write /{path} without another slash."
        if path == "metrics":
            return f" METRICS_PATH is /{self._metrics_path}."
        if path in {"lookup", "lookup.json", "lookup.csv"}:
            return " It needs the setting LOOKUP=true."
        if path == "sd/accounts":
            return " It needs several accounts (ACCOUNTS_DIR)."
        below_profiles = f"{path}/".startswith(f"{PROFILES_PATH}/")
        if below_profiles and PROFILES_PATH not in self._paths:
            return " It needs the option --enable-pprof."
        if path in _OTHER_NAMES:
            return f" Request /{_OTHER_NAMES[path]}."
        return ""


class Tree(Resource):
    """The pages by path, without a slash in front; any other path is 404."""

    def __init__(self, pages: Mapping[str, IResource], metrics_path: str) -> None:
        super().__init__()
        self.pages = pages
        self._not_found = NotFound(pages, metrics_path)

    def getChildWithDefault(  # noqa: N802 - the name is Twisted's
        self, path: bytes, request: Request
    ) -> IResource:
        """Return the page of the whole path."""
        before, after = request.prepath or [], request.postpath or []
        request.prepath, request.postpath = [*before, *after], []
        whole = b"/".join((path, *after)).decode("utf-8", "replace")
        return self.pages.get(whole, self._not_found)


def tree(networks: Networks, context: SiteContext, *, lookup: bool) -> Tree:
    pages: dict[str, IResource] = {
        "": Status(networks, context),
        "health": Health(networks, context),
        "ready": Ready(networks, context),
        "sd": Discovery(networks, context),
        FINDINGS_PATH: Findings(networks, context),
        "status.json": StatusJson(networks, context),
        "status.schema.json": Schema(),
        RUNBOOKS_PATH: Runbooks(),
        context.metrics_path.strip("/"): Metrics(networks, context),
        **context.profiles,
    }
    if "" not in networks:
        metrics_path = context.metrics_path
        pages["sd/accounts"] = AccountTargets(networks, metrics_path=metrics_path)
    if lookup:
        from api_exporter.web.lookup import LOOKUP_PAGES  # noqa: PLC0415

        pages |= {path: make(networks, context) for path, make in LOOKUP_PAGES.items()}
    return Tree(pages, context.metrics_path)

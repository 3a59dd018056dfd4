"""The tree of pages, by path."""

from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource

from api_exporter.web.account_page import Networks
from api_exporter.web.context import PROFILES_PATH, RUNBOOKS_PATH, SiteContext
from api_exporter.web.discovery import Discovery
from api_exporter.web.metrics import Metrics
from api_exporter.web.probes import Health, Ready
from api_exporter.web.runbooks import Runbooks
from api_exporter.web.status.pages import FINDINGS_PATH, Findings, Status
from api_exporter.web.status.status_json import (
    SCHEMA_PATH,
    STATUS_PATH,
    Schema,
    StatusJson,
)


def tree(networks: Networks, context: SiteContext, *, lookup: bool = False) -> Resource:
    """Return all pages; any other path is 404.

    Args:
        lookup: whether there are look-up pages.
    """
    pages: dict[str, IResource] = {
        "": Status(networks, context),
        "health": Health(networks, context),
        "ready": Ready(networks, context),
        "sd": Discovery(networks, context),
        FINDINGS_PATH: Findings(networks, context),
        STATUS_PATH: StatusJson(networks, context),
        SCHEMA_PATH: Schema(),
        RUNBOOKS_PATH: Runbooks(),
        context.metrics_path: Metrics(networks, context),
    }
    if "" not in networks:
        from api_exporter.web.accounts import AccountTargets  # noqa: PLC0415

        targets = AccountTargets(networks, metrics_path=context.metrics_path)
        pages["sd"].putChild(b"accounts", targets)
    if lookup:
        from api_exporter.web.lookup import LOOKUP_PAGES  # noqa: PLC0415

        pages |= {path: make(networks, context) for path, make in LOOKUP_PAGES.items()}
    if context.profiles is not None:
        pages[PROFILES_PATH] = context.profiles
    root = Resource()
    for path, page in pages.items():
        *parents, name = path.strip("/").encode().split(b"/")
        parent: IResource = root
        for segment in parents:
            child = notFound()
            parent.putChild(segment, child)
            parent = child
        parent.putChild(name, page)
    return root

"""The tree of pages, by path."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import ACCOUNT_NOT_FOUND, ErrorPage, ReadOnlyPage
from api_exporter.web.context import PROFILES_PATH, RUNBOOKS_PATH, SiteContext
from api_exporter.web.discovery.page import Discovery
from api_exporter.web.findings import Findings
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.runbooks import Runbooks
from api_exporter.web.status.findings import FINDINGS_PATH
from api_exporter.web.status.page import Status
from api_exporter.web.status.status_json import (
    SCHEMA_PATH,
    STATUS_PATH,
    Schema,
    StatusJson,
)


def tree(
    accounts: Mapping[str, AccountNetwork],
    context: SiteContext,
    summary: Mapping[str, IResource] | None = None,
    others: Mapping[str, IResource] = MappingProxyType({}),
) -> Resource:
    """Return all pages; any other path is 404.

    Args:
        summary: the pages for requests without an account, by path. None if there is
            only one account; then all pages are its pages.
        others: pages of optional features, by path.
    """

    def status_json(network: AccountNetwork, _: SiteContext) -> StatusJson:
        return StatusJson({network.account: network}, context)

    def metrics(network: AccountNetwork, _: SiteContext) -> Metrics:
        process = () if summary else (context.process.registry,)
        registries = (network.telemetry.registry, *process)
        return Metrics(network.pages, *registries, context=context)

    pages: dict[str, Callable[[AccountNetwork, SiteContext], IResource]] = {
        "": Status,
        "health": Health,
        "ready": Ready,
        "sd": Discovery,
        FINDINGS_PATH: Findings,
        STATUS_PATH: status_json,
        context.metrics_path: metrics,
    }
    root = Resource()
    for path, make in pages.items():
        made = {name: make(network, context) for name, network in accounts.items()}
        if summary is None:
            (page,) = made.values()
        else:
            by_name = {name.encode(): one for name, one in made.items()}
            page = ByAccount(by_name, summary[path])
        _put(root, path, page)
    if summary is not None:
        root.children[b"sd"].putChild(b"accounts", summary["sd/accounts"])
    root.putChild(SCHEMA_PATH.encode(), Schema())
    root.putChild(RUNBOOKS_PATH.encode(), Runbooks())
    for path, other in others.items():
        root.putChild(path.encode(), other)
    if context.profiles is not None:
        _put(root, PROFILES_PATH, context.profiles)
    return root


def _put(root: IResource, path: str, page: IResource) -> None:
    *parents, name = path.strip("/").encode().split(b"/")
    for segment in parents:
        child = notFound()
        root.putChild(segment, child)
        root = child
    root.putChild(name, page)


class ByAccount(ReadOnlyPage):
    """A page that delegates to the page of the account in `?account=NAME`.

    Args:
        pages: by the account's name.
        summary: the page for requests without an account.
    """

    def __init__(self, pages: Mapping[bytes, IResource], summary: IResource) -> None:
        super().__init__()
        self._pages = pages
        self._summary = summary
        self._unknown = ErrorPage(404, ACCOUNT_NOT_FOUND)

    def render(self, request: Request) -> bytes | int:
        named = request.args.get(b"account")
        page: IResource | None = self._summary
        if named is not None:
            page = self._pages.get(named[0]) if len(named) == 1 else None
        answer: bytes | int = (page or self._unknown).render(request)
        return answer

"""The tree of pages: one `putChild` a page."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct
from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import ACCOUNT_NOT_FOUND, ErrorPage, ReadOnlyPage
from api_exporter.web.context import PROFILES_PATH, SiteContext
from api_exporter.web.discovery.page import Discovery
from api_exporter.web.findings import Findings
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.runbooks import RUNBOOKS_PATH, Runbooks
from api_exporter.web.status.findings import FINDINGS_PATH
from api_exporter.web.status.page import Status
from api_exporter.web.status.status_json import (
    SCHEMA_PATH,
    STATUS_PATH,
    Schema,
    StatusJson,
)


class SummaryPages(Struct, frozen=True, kw_only=True):
    """The pages for requests without an account, if there are several accounts."""

    status: IResource
    status_json: IResource
    health: IResource
    ready: IResource
    metrics: IResource
    discovery: IResource
    findings: IResource
    targets: IResource


def tree(
    accounts: Mapping[str, AccountNetwork],
    context: SiteContext,
    summary: SummaryPages | None = None,
    others: Mapping[str, IResource] = MappingProxyType({}),
) -> Resource:
    """Return all pages; any other path is 404.

    Args:
        summary: None if there is only one account; then all pages are its pages.
        others: pages of optional features, by path.
    """

    def page(
        make: Callable[[AccountNetwork], IResource],
        of_summary: Callable[[SummaryPages], IResource],
    ) -> IResource:
        if summary is None:
            (only,) = accounts.values()
            return make(only)
        pages = {name.encode(): make(network) for name, network in accounts.items()}
        return ByAccount(pages, of_summary(summary))

    def metrics(network: AccountNetwork) -> Metrics:
        process = () if summary else (context.process.registry,)
        registries = (network.telemetry.registry, *process)
        return Metrics(network.pages, *registries, context=context)

    root = Resource()
    root.putChild(b"", page(lambda v: Status(v, context), lambda s: s.status))
    root.putChild(b"health", page(lambda v: Health(v, context), lambda s: s.health))
    root.putChild(b"ready", page(lambda v: Ready(v, context), lambda s: s.ready))
    discovery = page(lambda v: Discovery(v, context), lambda s: s.discovery)
    root.putChild(b"sd", discovery)
    findings_page = page(lambda v: Findings(v, context), lambda s: s.findings)
    root.putChild(FINDINGS_PATH.encode(), findings_page)
    status_json = page(
        lambda v: StatusJson({v.account: v}, context), lambda s: s.status_json
    )
    root.putChild(STATUS_PATH.encode(), status_json)
    root.putChild(SCHEMA_PATH.encode(), Schema())
    if summary is not None:
        discovery.putChild(b"accounts", summary.targets)
    root.putChild(RUNBOOKS_PATH.encode(), Runbooks())
    for path, other in others.items():
        root.putChild(path.encode(), other)
    if context.profiles is not None:
        _put(root, PROFILES_PATH, context.profiles)
    _put(root, context.metrics_path, page(metrics, lambda s: s.metrics))
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

"""The pages where there are several accounts: of each, and of all together."""

from collections.abc import Callable, Mapping

from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from api_exporter.exposition.pages import Pages
from api_exporter.serving.page import NO_ACCOUNT, ReadOnlyPage, Refusal
from api_exporter.telemetry.process import account_gauges
from api_exporter.web import tree
from api_exporter.web.account_targets import AccountTargets
from api_exporter.web.discovery.page import Discovery
from api_exporter.web.health import AllHealth
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import AllReady, Ready
from api_exporter.web.shown import Shown
from api_exporter.web.status.overview import Overview
from api_exporter.web.tree import Around


def of_several(accounts: Mapping[str, Shown], around: Around) -> Resource:
    """All pages; those of an account with `?account=NAME`."""
    telemetries = {name: shown.telemetry for name, shown in accounts.items()}
    account_gauges(around.process.registry, telemetries)

    def metrics(pages: Pages, shown: Shown | None) -> Metrics:
        own = around.process if shown is None else shown.telemetry
        return Metrics(
            pages,
            own.registry,
            in_flight=around.process.scrapes_in_flight,
            readers=around.readers,
            seconds=around.seconds,
        )

    def by_account(
        page: Callable[[str, Shown], IResource], without: IResource
    ) -> ByAccount:
        pages = {name.encode(): page(name, shown) for name, shown in accounts.items()}
        return ByAccount(pages, without)

    version = around.build.version
    return tree.root(
        status=by_account(
            lambda name, shown: tree.status(shown, around, name),
            Overview(
                accounts,
                version=around.build.details,
                metrics_path=around.metrics_path,
                pprof=around.pprof is not None,
                seconds=around.seconds,
                now=around.now,
            ),
        ),
        health=by_account(
            lambda _, shown: tree.health(shown, around),
            AllHealth(accounts, version=version, uptime=around.uptime),
        ),
        ready=by_account(
            lambda _, shown: Ready(shown, now=around.now),
            AllReady(accounts, now=around.now),
        ),
        metrics=by_account(
            lambda _, shown: metrics(shown.pages, shown), metrics(Pages([]), None)
        ),
        discovery=by_account(
            lambda name, shown: Discovery(
                shown, around.making, account=name, now=around.now
            ),
            Refusal(400, "account is missing: ask for /sd?account=NAME&port=9100"),
        ),
        metrics_path=around.metrics_path,
        targets=AccountTargets(accounts, metrics_path=around.metrics_path),
        pprof=around.pprof,
    )


class ByAccount(ReadOnlyPage):
    """Leads to the page of the account that `?account=NAME` names.

    Args:
        pages: by the account's name.
        without: what is shown to whoever names none.
    """

    def __init__(self, pages: Mapping[bytes, IResource], without: IResource) -> None:
        super().__init__()
        self._pages = pages
        self._without = without
        self._unknown = Refusal(404, NO_ACCOUNT)

    def render(self, request: Request) -> bytes | int:
        """Whatever that page answers."""
        named = request.args.get(b"account")
        page: IResource | None = self._without
        if named is not None:
            page = self._pages.get(named[0]) if len(named) == 1 else None
        answer: bytes | int = (page or self._unknown).render(request)
        return answer

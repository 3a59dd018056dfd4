"""`/health`: the state of the process and its resources, as JSON."""

from collections.abc import Mapping

from twisted.web.server import Request

from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import JsonPage
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.context import SiteContext


class Health(JsonPage):
    """The health of one account. The status is 200 whenever the process responds."""

    def __init__(self, network: AccountNetwork, context: SiteContext) -> None:
        super().__init__()
        self._network = network
        self._context = context

    def answer(self, _request: Request) -> dict[str, object]:
        freshness = self._network.telemetry.freshness
        return {
            **_process(self._context),
            "upstream": {
                "url": self._network.url,
                "reachable": self._network.telemetry.reachable,
            },
            "resources": {name: _entry(known) for name, known in freshness.items()},
        }


class AllHealth(JsonPage):
    """The health of several accounts: the `up` of each."""

    def __init__(
        self, accounts: Mapping[str, AccountNetwork], context: SiteContext
    ) -> None:
        super().__init__()
        self._accounts = accounts
        self._context = context

    def answer(self, _request: Request) -> dict[str, object]:
        return {
            **_process(self._context),
            "accounts": {
                name: {"up": network.telemetry.freshness[UP].up}
                for name, network in self._accounts.items()
            },
        }


def _process(context: SiteContext) -> dict[str, object]:
    return {
        "status": "ok",
        "version": context.build.version,
        "uptime_seconds": round(context.uptime(), 3),
    }


def _entry(freshness: Freshness) -> dict[str, object]:
    entry: dict[str, object] = {
        "up": freshness.up,
        "supported": freshness.supported,
        "last_success_timestamp_seconds": freshness.last_success,
        "records": freshness.records if freshness.last_success else None,
        "last_error_reason": freshness.error.reason if freshness.error else None,
    }
    if freshness.error is not None and freshness.error.request_id:
        entry["last_error_request_id"] = freshness.error.request_id
    return entry

"""`/health`: whether the process answers, and what it knows, as JSON."""

import json
from collections.abc import Mapping

from twisted.web.server import Request

from api_exporter.netbird.resources import UP
from api_exporter.serving.page import TextPage
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.account_view import AccountView
from api_exporter.web.context import SiteContext


class Health(TextPage):
    """Always 200 while the process answers: it is alive, whatever the upstream does."""

    media_type = b"application/json"

    def __init__(self, view: AccountView, context: SiteContext) -> None:
        super().__init__()
        self._view = view
        self._context = context

    def text(self, _request: Request) -> str:
        """One JSON object."""
        standings = self._view.telemetry.standings
        health = {
            **_process(self._context),
            "upstream": {
                "url": self._view.url,
                "reachable": self._view.telemetry.reachable,
            },
            "resources": {
                name: _entry(standing) for name, standing in standings.items()
            },
        }
        return json.dumps(health, indent=2) + "\n"


class AllHealth(TextPage):
    """The same of several accounts: of each whether its upstream can be relied on."""

    media_type = b"application/json"

    def __init__(
        self, accounts: Mapping[str, AccountView], context: SiteContext
    ) -> None:
        super().__init__()
        self._accounts = accounts
        self._context = context

    def text(self, _request: Request) -> str:
        """One JSON object."""
        health = {
            **_process(self._context),
            "accounts": {
                name: {"up": view.telemetry.standings[UP].up}
                for name, view in self._accounts.items()
            },
        }
        return json.dumps(health, indent=2) + "\n"


def _process(context: SiteContext) -> dict[str, object]:
    return {
        "status": "ok",
        "version": context.build.version,
        "uptime_seconds": round(context.uptime(), 3),
    }


def _entry(standing: Freshness) -> dict[str, object]:
    entry: dict[str, object] = {
        "up": standing.up,
        "supported": standing.supported,
        "last_success_timestamp_seconds": standing.last_success,
        "records": standing.records if standing.last_success else None,
        "last_error_reason": standing.error.reason if standing.error else None,
    }
    if standing.error is not None and standing.error.request_id:
        entry["last_error_request_id"] = standing.error.request_id
    return entry

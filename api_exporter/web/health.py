"""`/health`: whether the process answers, and what it knows, as JSON."""

import json
from collections.abc import Callable, Mapping

from twisted.web.server import Request

from api_exporter.netbird.resources import UP
from api_exporter.serving.page import TextPage
from api_exporter.telemetry.standing import Standing
from api_exporter.web.shown import Shown


class Health(TextPage):
    """Always 200 while the process answers: it is alive, whatever the upstream does.

    Args:
        uptime: seconds since the start.
    """

    media_type = b"application/json"

    def __init__(
        self,
        shown: Shown,
        *,
        version: str,
        uptime: Callable[[], float],
    ) -> None:
        super().__init__()
        self._shown = shown
        self._version = version
        self._uptime = uptime

    def text(self, _request: Request) -> str:
        """One JSON object."""
        standings = self._shown.telemetry.standings
        health = {
            "status": "ok",
            "version": self._version,
            "uptime_seconds": round(self._uptime(), 3),
            "upstream": {
                "url": self._shown.url,
                "reachable": self._shown.telemetry.reachable,
            },
            "resources": {
                name: _entry(standing) for name, standing in standings.items()
            },
        }
        return json.dumps(health, indent=2) + "\n"


class AllHealth(TextPage):
    """The same of several accounts: of each whether its upstream can be relied on.

    Args:
        uptime: seconds since the start.
    """

    media_type = b"application/json"

    def __init__(
        self,
        accounts: Mapping[str, Shown],
        *,
        version: str,
        uptime: Callable[[], float],
    ) -> None:
        super().__init__()
        self._accounts = accounts
        self._version = version
        self._uptime = uptime

    def text(self, _request: Request) -> str:
        """One JSON object."""
        health = {
            "status": "ok",
            "version": self._version,
            "uptime_seconds": round(self._uptime(), 3),
            "accounts": {
                name: {"up": shown.telemetry.standings[UP].up}
                for name, shown in self._accounts.items()
            },
        }
        return json.dumps(health, indent=2) + "\n"


def _entry(standing: Standing) -> dict[str, object]:
    return {
        "up": standing.up,
        "supported": standing.supported,
        "last_success_timestamp_seconds": standing.last_success,
        "records": standing.records if standing.last_success else None,
        "last_error_reason": standing.error.reason if standing.error else None,
    }

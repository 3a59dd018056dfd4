"""Asks for the access log of the reverse proxy, a page at a time."""

from collections.abc import Callable

from api_exporter.events.journal import Journal
from api_exporter.events.position import Position
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Fetch, UpstreamError
from api_exporter.telemetry.access_log import AccessLogTelemetry

REST = 30.0
"""Seconds between two requests while it has caught up, however many are allowed."""


class AccessLog:
    """The access log of an account.

    Args:
        journal: takes the pages.
        telemetry: counts their rows.
        period: seconds between two requests while it is behind.
        seconds: a clock.

    Attributes:
        journal: the same.
    """

    def __init__(
        self,
        journal: Journal[Position, str],
        telemetry: AccessLogTelemetry,
        *,
        period: float,
        seconds: Callable[[], float],
    ) -> None:
        self.journal = journal
        self._telemetry = telemetry
        self._rest = REST - period
        self._seconds = seconds
        self._asked = float("-inf")

    def wanted(self) -> bool:
        """Whether it is time to ask for rows."""
        return self.journal.behind or self._seconds() - self._asked >= self._rest

    async def fetch(
        self, fetch: Fetch, path: str, patience: float, inventory: Inventory
    ) -> bytes:
        """The next page; the journal writes and counts what is new in it."""
        self._telemetry.listed(inventory.service_names)
        self._asked = self._seconds()
        position = await self.journal.begun()
        if position is None:
            raise UpstreamError("internal", "the last written row is not known yet")
        body = await fetch(f"{path}?{position.query}", patience)
        self.journal.take(body, position)
        return body

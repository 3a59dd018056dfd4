"""The access log of the reverse proxy: its requests, one page each."""

from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from api_exporter.logs.journal import Journal
from api_exporter.logs.position import Position
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Fetch, ResponseBody, UpstreamError
from api_exporter.subjects.reverse_proxy import service_names
from api_exporter.telemetry.logs import AccessLogTelemetry

REQUEST_INTERVAL = 30.0
"""Seconds between two requests without a backlog, even if more are allowed."""

BUSY_PAGES = 10
"""A log is busy after more than this number of pages in a row."""

BUSY_CYCLE = 150.0
"""Seconds between two starts of reading in a busy log.

Each start reads the last minute again: more starts would return the same rows.
"""

OPENING_TIMEOUT = 5.0
"""Seconds to wait for the files to open. Other requests of the account also wait."""


@dataclass(eq=False, kw_only=True, repr=False)
class AccessLog(Journal):
    """The access log of an account, whose requests it chooses.

    Attributes:
        interval: seconds between two requests during a backlog.
    """

    telemetry: AccessLogTelemetry
    interval: float
    clock: IReactorTime

    _requested_at = _started_at = float("-inf")
    _page_count = 0

    @property
    def min_interval(self) -> float:
        return BUSY_CYCLE if self._page_count > BUSY_PAGES else REQUEST_INTERVAL

    def is_due(self) -> bool:
        now = self.clock.seconds()
        is_due = now - self._requested_at >= REQUEST_INTERVAL - self.interval
        if self._page_count > BUSY_PAGES:
            is_due = is_due and now - self._started_at >= BUSY_CYCLE
        return self.is_behind or is_due

    async def fetch(
        self, fetch: Fetch, path: str, max_seconds: float, inventory: Inventory
    ) -> ResponseBody:
        """Request the next page and return it; the journal writes and counts new rows.

        Raises UpstreamError, without a request, if the log cannot be written.
        """
        self.telemetry.set_services(service_names(inventory))
        self._requested_at = self.clock.seconds()
        if not self.is_behind:
            self._started_at, self._page_count = self._requested_at, 0
        self._page_count += 1
        opening = Deferred.fromCoroutine(self.open_files())
        position = await opening.addTimeout(OPENING_TIMEOUT, self.clock, _give_up)
        if position is None:
            raise UpstreamError("log_file", self.problem, unsent=True)
        assert isinstance(position, Position)
        body = await fetch(f"{path}?{position.query}", max_seconds)
        self.receive(body.data, position)
        return body


def _give_up(_: object, seconds: float) -> None:
    """Return None instead of raising TimeoutError."""

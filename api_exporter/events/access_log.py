"""Asks for the access log of the reverse proxy, a page at a time."""

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from api_exporter.events.journal import Journal
from api_exporter.events.position import Position
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Body, Fetch, UpstreamError
from api_exporter.telemetry.access_log import AccessLogTelemetry

REST = 30.0
"""Seconds between two requests while it has caught up, however many are allowed."""

BUSY = 10
"""Pages in a row from which on a log is busy."""

BUSY_CYCLE = 150.0
"""Seconds from one beginning to the next in a busy log. Each time the last minute is
read again, so more requests would bring the same rows.
"""

LONGEST_OPENING = 5.0
"""Seconds to wait until the files are open. Other requests of the account wait, too."""


class AccessLog:
    """The access log of an account.

    Args:
        journal: takes the pages.
        telemetry: counts their rows.
        period: seconds between two requests while it is behind.

    Attributes:
        journal: the same.
    """

    def __init__(
        self,
        journal: Journal[Position, str],
        telemetry: AccessLogTelemetry,
        *,
        period: float,
        clock: IReactorTime,
    ) -> None:
        self.journal = journal
        self._telemetry = telemetry
        self._period = period
        self._clock = clock
        self._asked = self._began = float("-inf")
        self._pages = 0

    def wanted(self) -> bool:
        """Whether it is time to ask for rows."""
        now = self._clock.seconds()
        rested = now - self._asked >= REST - self._period
        if self._pages > BUSY:
            rested = rested and now - self._began >= BUSY_CYCLE
        return self.journal.behind or rested

    async def fetch(
        self, fetch: Fetch, path: str, patience: float, inventory: Inventory
    ) -> Body:
        """The next page; the journal writes and counts what is new in it.

        Raises UpstreamError, without a request, if the log cannot be written.
        """
        self._telemetry.listed(inventory.service_names)
        self._asked = self._clock.seconds()
        if not self.journal.behind:
            self._began, self._pages = self._asked, 0
        self._pages += 1
        begun = Deferred.fromCoroutine(self.journal.begun())
        position = await begun.addTimeout(LONGEST_OPENING, self._clock, _give_up)
        if position is None:
            raise UpstreamError("log_file", self.journal.problem, unsent=True)
        body = await fetch(f"{path}?{position.query}", patience)
        self.journal.take(body.data, position)
        return body


def _give_up(_: object, seconds: float) -> None:
    """Instead of raising TimeoutError."""

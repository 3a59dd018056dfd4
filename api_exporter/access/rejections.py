"""Rejected clients in the log: at most two lines a minute for each address."""

from collections import Counter

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

COUNT_INTERVAL = 60.0

MAX_CLIENTS = 50
"""The maximum number of addresses with log lines of their own."""

_log = Logger()


class Rejections:
    """A log of rejections: the first in a minute at once, their number at its end."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._timer: IDelayedCall | None = None

    def add(self, address: str, error: str) -> None:
        if address not in self._counts and len(self._counts) >= MAX_CLIENTS:
            address = "other addresses"
        if not self._counts[address]:
            _log.warn(
                "rejected {client}: {error}", client=address or "a client", error=error
            )
        self._counts[address] += 1
        if self._timer is None:
            self._timer = self._clock.callLater(COUNT_INTERVAL, self._log_counts)

    def _log_counts(self) -> None:
        self._timer = None
        counts, self._counts = self._counts, Counter()
        for address, count in counts.items():
            if count > 1:
                _log.warn(
                    "rejected {client}: {count} times in one minute",
                    client=address or "a client",
                    count=count,
                )

    def stop(self) -> None:
        """Log the counts that are not logged yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._log_counts()

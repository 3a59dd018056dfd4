"""A history: how many peers were connected in the last hours, in bounded memory.

A restart forgets it: what must last is Prometheus' business.
"""

from collections import deque
from collections.abc import Iterable
from math import ceil

from msgspec import Struct

from api_exporter.netbird.records import Peer

SPAN = 6 * 3600.0
"""Seconds that are remembered."""

SHORTEST_STEP = 60.0
"""Seconds between two counts that are kept, at least."""

_GAP = 2.5
"""Steps: a longer distance between two counts is a gap."""


class Count(Struct, frozen=True, kw_only=True):
    """How many there were, at a time in seconds since the epoch."""

    at: float
    connected: int
    disconnected: int

    @property
    def peers(self) -> int:
        return self.connected + self.disconnected


class History:
    """Counts, a step apart.

    Args:
        period: seconds between two refreshes of the peers.

    Attributes:
        step: seconds for which a count stands, more or less.
    """

    def __init__(self, *, period: float) -> None:
        self.step = max(SHORTEST_STEP, period)
        self._counts: deque[Count] = deque(maxlen=ceil(SPAN / self.step))

    def observe(self, at: float, peers: Iterable[Peer]) -> None:
        """Count what was just read; of each step the newest count is kept."""
        states = [peer.connected for peer in peers]
        connected = sum(states)
        slot = at // self.step
        # Not only the same step's: a clock that was set back begins again from there.
        while self._counts and self._counts[-1].at // self.step >= slot:
            self._counts.pop()
        self._counts.append(
            Count(at=at, connected=connected, disconnected=len(states) - connected)
        )

    def runs(self, now: float) -> list[list[Count]]:
        """What is known of the last hours, ascending; a new run after every gap."""
        runs: list[list[Count]] = []
        for count in self._counts:
            if not now - SPAN <= count.at <= now:
                continue
            if runs and count.at - runs[-1][-1].at <= _GAP * self.step:
                runs[-1].append(count)
            else:
                runs.append([count])
        return runs

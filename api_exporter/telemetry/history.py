"""The number of connected peers in the last hours, in bounded memory.

A restart deletes it: Prometheus stores the permanent history.
"""

from collections import deque
from collections.abc import Iterable
from math import ceil

from msgspec import Struct

from api_exporter.netbird.records import Peer

HISTORY_SECONDS = 6 * 3600.0

MIN_STEP = 60.0
"""Minimum seconds between two stored counts."""

_MAX_GAP_STEPS = 2.5
"""Maximum steps between two counts without a gap."""


class PeerCount(Struct, frozen=True, kw_only=True):
    """The numbers of peers at a time in seconds since the epoch."""

    at: float
    connected: int
    disconnected: int

    @property
    def peers(self) -> int:
        return self.connected + self.disconnected


class History:
    """Counts of peers, one per step.

    Args:
        period: seconds between two refreshes of the peers.
    """

    def __init__(self, *, period: float) -> None:
        self.step = max(MIN_STEP, period)
        self._counts: deque[PeerCount] = deque(maxlen=ceil(HISTORY_SECONDS / self.step))

    def observe(self, at: float, peers: Iterable[Peer]) -> None:
        """Store a count of the peers; it replaces an earlier count of the same step."""
        states = [peer.connected for peer in peers]
        connected = sum(states)
        slot = at // self.step
        # Later counts are removed, too: the clock may have been set back.
        while self._counts and self._counts[-1].at // self.step >= slot:
            self._counts.pop()
        self._counts.append(
            PeerCount(at=at, connected=connected, disconnected=len(states) - connected)
        )

    def runs(self, now: float) -> list[list[PeerCount]]:
        """Return the counts of the last hours in ascending order, split at gaps."""
        runs: list[list[PeerCount]] = []
        for count in self._counts:
            if not now - HISTORY_SECONDS <= count.at <= now:
                continue
            if runs and count.at - runs[-1][-1].at <= _MAX_GAP_STEPS * self.step:
                runs[-1].append(count)
            else:
                runs.append([count])
        return runs

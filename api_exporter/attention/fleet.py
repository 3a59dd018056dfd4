"""The drop of a fleet: many peers lost at once, as `rules.in.yml` has it.

Peers that a person logged in on go home: what counts are those that a setup key has
enrolled. Ephemeral ones come and go.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from api_exporter.attention.thresholds import Thresholds
from api_exporter.exposition.tally import chunks
from api_exporter.netbird.facts.members import Steps
from api_exporter.netbird.records import Peer

_FALLING = 600
"""Seconds within which they are lost."""

_LYING = 3600
"""Seconds for which it is told, unless they come back."""


def dropped(
    peers: Sequence[Peer], now: float, thresholds: Thresholds
) -> Steps[float | None]:
    """Since when a great part of the peers is gone; None where none is."""
    fleet = _Fleet(now)
    for some in chunks(peers):
        fleet.add(some)
        yield
    return fleet.dropped(thresholds)


class _Fleet:
    """How many peers are connected, and how many were lost lately.

    Args:
        now: seconds since the epoch.
    """

    def __init__(self, now: float) -> None:
        self._from = datetime.fromtimestamp(now - _LYING - _FALLING, UTC)
        self._until = datetime.fromtimestamp(now + _FALLING, UTC)
        self._connected = self._connected_keyed = 0
        # By second, so that there are few however many were lost.
        self._lost: Counter[int] = Counter()
        self._lost_keyed: Counter[int] = Counter()

    def add(self, peers: Sequence[Peer]) -> None:
        connected = [p for p in peers if p.connected and not p.ephemeral]
        self._connected += len(connected)
        self._connected_keyed += sum(not p.user_id for p in connected)
        for peer in peers:
            if peer.connected or peer.ephemeral or peer.last_seen is None:
                continue
            if self._from <= peer.last_seen <= self._until:
                at = int(peer.last_seen.timestamp())
                self._lost[at] += 1
                self._lost_keyed[at] += not peer.user_id

    def dropped(self, thresholds: Thresholds) -> float | None:
        """Since when a great part of them is gone; None where none is."""
        shares, least = thresholds.shares, thresholds.peers
        seconds = sorted(self._lost)
        # Of those that were connected at a second, and that were lost in ten minutes.
        before = self._connected + self._lost.total()
        before_keyed = self._connected_keyed + self._lost_keyed.total()
        lost = lost_keyed = end = 0
        for start in seconds:
            while end < len(seconds) and seconds[end] < start + _FALLING:
                lost += self._lost[seconds[end]]
                lost_keyed += self._lost_keyed[seconds[end]]
                end += 1
            left = (1 - shares["fleet_lost"]) * before_keyed
            if before_keyed - lost_keyed < left and (
                lost_keyed >= least["fleet_lost"]
                or (lost >= least["all_lost"] and lost >= shares["all_lost"] * before)
            ):
                return start
            lost -= self._lost[start]
            lost_keyed -= self._lost_keyed[start]
            before -= self._lost[start]
            before_keyed -= self._lost_keyed[start]
        return None

"""Whether a great part of the peers was lost at once, as `rules.in.yml` has it.

Peers that a person logged in on go home: what counts are those that a setup key has
enrolled. Ephemeral ones come and go.
"""

from bisect import bisect_left
from collections.abc import Sequence

from api_exporter.attention.thresholds import Thresholds
from api_exporter.collectors.peers import enrolment
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.records import Peer

_FALLING = 600.0
"""Seconds within which they are lost."""

_LYING = 3600.0
"""Seconds for which it is told, unless they come back."""


class Fleet:
    """How many peers are connected, and which were lost lately.

    Args:
        now: seconds since the epoch.
    """

    def __init__(self, now: float) -> None:
        self._from = now - _LYING - _FALLING
        self._connected = self._keyed = 0
        self._lost: list[tuple[float, bool]] = []

    def add(self, peers: Sequence[Peer]) -> None:
        """Some of the peers."""
        for peer in peers:
            if peer.ephemeral:
                continue
            by_user, connected = enrolment(peer)
            if connected:
                self._connected += 1
                self._keyed += not by_user
            else:
                at = timestamp(peer.last_seen)
                if at is not None and at >= self._from:
                    self._lost.append((at, not by_user))

    def dropped(self, thresholds: Thresholds) -> float | None:
        """Since when a great part of them is gone; None where none is."""
        self._lost.sort()
        instants = [at for at, _ in self._lost]
        keyed = [0]  # lost ones, among the first so many
        for _, by_key in self._lost:
            keyed.append(keyed[-1] + by_key)
        for start, at in enumerate(instants):
            end = bisect_left(instants, at + _FALLING, start)
            lost = end - start
            keyed_lost = keyed[end] - keyed[start]
            # Those that were connected at that time.
            before = self._connected + len(instants) - start
            keyed_before = self._keyed + keyed[-1] - keyed[start]
            left = 1 - thresholds.shares["fleet_lost"]
            if keyed_before - keyed_lost < left * keyed_before and (
                keyed_lost >= thresholds.peers["fleet_lost"]
                or (
                    lost >= thresholds.peers["all_lost"]
                    and lost >= thresholds.shares["all_lost"] * before
                )
            ):
                return at
        return None

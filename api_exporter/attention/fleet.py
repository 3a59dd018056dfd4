"""The drop of a fleet: many peers lost at once, as `rules.in.yml` has it.

Peers that a person logged in on go home: what counts are those that a setup key has
enrolled. Ephemeral ones come and go.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from api_exporter.attention.thresholds import Thresholds
from api_exporter.netbird.records import Peer

DROP_WINDOW = 600
"""Seconds within which the peers are lost."""

SHOWN_FOR = 3600
"""Seconds for which a drop is shown, unless the peers come back."""


def dropped(peers: Sequence[Peer], now: float, thresholds: Thresholds) -> float | None:
    """Return when many peers went offline at once, or None."""
    start = datetime.fromtimestamp(now - SHOWN_FOR - DROP_WINDOW, UTC)
    end = datetime.fromtimestamp(now + DROP_WINDOW, UTC)
    lasting = [peer for peer in peers if not peer.ephemeral]
    connected = [peer for peer in lasting if peer.connected]
    lost = [
        (int(peer.last_seen.timestamp()), peer)
        for peer in lasting
        if not peer.connected and peer.last_seen and start <= peer.last_seen <= end
    ]
    return _drop(
        thresholds,
        (len(connected), sum(not peer.user_id for peer in connected)),
        # By second, so that there are few however many were lost.
        Counter(at for at, _ in lost),
        Counter(at for at, peer in lost if not peer.user_id),
    )


def _drop(
    thresholds: Thresholds,
    connected: tuple[int, int],
    lost_at: Counter[int],
    lost_keyed_at: Counter[int],
) -> float | None:
    """Return the first second from which many were lost within DROP_WINDOW, or None.

    Args:
        connected: how many peers are, and how many of them a setup key has enrolled.
        lost_at: how many were lost at each second.
        lost_keyed_at: how many of them a setup key has enrolled.
    """
    shares, least = thresholds.shares, thresholds.peers
    seconds = sorted(lost_at)
    # Those that were connected at a second, and those lost in the window from then on.
    before = connected[0] + lost_at.total()
    before_keyed = connected[1] + lost_keyed_at.total()
    lost = lost_keyed = end = 0
    for start in seconds:
        while end < len(seconds) and seconds[end] < start + DROP_WINDOW:
            lost += lost_at[seconds[end]]
            lost_keyed += lost_keyed_at[seconds[end]]
            end += 1
        left = (1 - shares["fleet_lost"]) * before_keyed
        if before_keyed - lost_keyed < left and (
            lost_keyed >= least["fleet_lost"]
            or (lost >= least["all_lost"] and lost >= shares["all_lost"] * before)
        ):
            return start
        lost -= lost_at[start]
        lost_keyed -= lost_keyed_at[start]
        before -= lost_at[start]
        before_keyed -= lost_keyed_at[start]
    return None

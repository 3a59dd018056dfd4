"""A drop of the fleet: many peers went offline at once.

A drop requires that a share of the peers with a setup key is lost: peers with a login
go offline daily. Ephemeral peers are ignored.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from api_exporter.attention.thresholds import Thresholds
from api_exporter.netbird.records import Peer

DROP_WINDOW = 600
"""Seconds within which the peers of a drop go offline."""

LULL_SECONDS = 60
"""Seconds without a loss after which earlier losses are not part of a drop."""

SHOWN_FOR = 3600
"""Seconds for which a drop is shown, unless the peers reconnect."""


def drop_at(peers: Sequence[Peer], now: float, thresholds: Thresholds) -> float | None:
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
    return _first_drop(
        thresholds,
        (len(connected), sum(not peer.user_id for peer in connected)),
        # One count a second limits the work, even if very many peers are lost.
        Counter(at for at, _ in lost),
        Counter(at for at, peer in lost if not peer.user_id),
    )


def _first_drop(
    thresholds: Thresholds,
    connected: tuple[int, int],
    lost_at: Counter[int],
    lost_keyed_at: Counter[int],
) -> float | None:
    """Return the second at which a drop began, or None.

    It is the last one after a lull from which enough peers are lost: a single peer that
    went offline minutes before does not begin the drop.

    Args:
        connected: number of connected peers, and of those that a setup key enrolled.
        lost_at: number of lost peers by second.
        lost_keyed_at: number of those that a setup key enrolled.
    """
    shares, minimums = thresholds.shares, thresholds.peers
    seconds = sorted(lost_at)
    # Peers that were connected before `start`, and peers lost in the window from it.
    before = connected[0] + lost_at.total()
    before_keyed = connected[1] + lost_keyed_at.total()
    lost = lost_keyed = end = 0
    found: int | None = None
    for start, last in zip(seconds, [None, *seconds], strict=False):
        if found is not None and start >= found + DROP_WINDOW:
            break
        while end < len(seconds) and seconds[end] < start + DROP_WINDOW:
            lost += lost_at[seconds[end]]
            lost_keyed += lost_keyed_at[seconds[end]]
            end += 1
        # A quotient equals its share exactly; a product may be above it.
        if (
            lost_keyed
            and lost_keyed / before_keyed >= shares["fleet_lost"]
            and (
                lost_keyed >= minimums["fleet_lost"]
                or (
                    lost >= minimums["all_lost"] and lost / before >= shares["all_lost"]
                )
            )
            and (found is None or (last and start - last > LULL_SECONDS))
        ):
            found = start
        lost -= lost_at[start]
        lost_keyed -= lost_keyed_at[start]
        before -= lost_at[start]
        before_keyed -= lost_keyed_at[start]
    return found

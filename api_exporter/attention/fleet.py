"""Whether a great part of the peers was lost at once, as `rules.in.yml` has it."""

from collections.abc import Sequence

from api_exporter.attention.thresholds import Thresholds
from api_exporter.telemetry.history import Count

_FALLING = 600.0
"""Seconds within which they are lost."""

_LYING = 3600.0
"""Seconds for which it is told, unless they come back."""


def dropped(
    runs: Sequence[Sequence[Count]], now: float, thresholds: Thresholds
) -> float | None:
    """Since when they are gone; None where they are not."""
    counts = [
        count
        for run in runs
        for count in run
        if now - _LYING - _FALLING <= count.at <= now and count.peers
    ]
    left = 1 - thresholds.shares["fleet_lost"]
    if not counts or _share(counts[-1]) > left * max(map(_share, counts)):
        return None
    for count in counts:
        before = [c for c in counts if count.at - _FALLING <= c.at <= count.at]
        if (
            count.at >= now - _LYING
            and _share(count) <= left * max(map(_share, before))
            and max(c.connected for c in before) >= thresholds.peers["fleet"]
        ):
            return count.at
    return None


def _share(count: Count) -> float:
    return count.connected / count.peers

"""The chart of peers, and the strip of the worst severity, as SVG paths."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from api_exporter.attention.history import HISTORY_SECONDS, Sample

WIDTH, HEIGHT = 720, 120

_HEIGHTS = {"unread": 1.0, "critical": 1.0, "warning": 0.6, "ok": 0.25}
"""The height of a bar in the strip, by the class of its colour."""


class Chart(Struct, frozen=True):
    """A chart of stacked areas: their total height is the number of peers.

    Attributes:
        start: the line at the start of the exporter; "" if it was earlier.
    """

    top: int
    peers: str
    connected: str
    start: str


def axis_top(count: int) -> int:
    """Return a count rounded up to two even digits and zeros, so its half is round."""
    unit: int = 2 * 10 ** max(0, len(str(count)) - 2)
    return max(1, -(-count // unit)) * unit


def chart(samples: Sequence[Sample | None], uptime: float) -> Chart:
    top = axis_top(max((one.peers for one in samples if one), default=0))
    start = WIDTH * (1 - uptime / HISTORY_SECONDS)
    return Chart(
        top=top,
        peers=_bars(one.peers / top if one else 0.0 for one in samples),
        connected=_bars(one.connected / top if one else 0.0 for one in samples),
        start=f"M{start:.1f},0V{HEIGHT}" if start >= 0 else "",
    )


def strip(severities: Iterable[tuple[str, int]]) -> Mapping[str, str]:
    """Return bars by colour class, given severities with their numbers of steps.

    An unknown severity has no bar.
    """
    every = [*severities]
    width, begin = WIDTH / sum(count for _, count in every), 0
    drawn: dict[str, str] = {}
    for name, count in every:
        colour = name if name in _HEIGHTS else "ok"
        bar = _bar(begin * width, (begin + count) * width, _HEIGHTS[colour])
        if name != "unknown":
            drawn[colour] = drawn.get(colour, "") + bar
        begin += count
    return drawn


def _bars(heights: Iterable[float]) -> str:
    """Return a bar for each step, from 0 to 1 high; equal ones are joined."""
    every = [*heights]
    width, begin, drawn = WIDTH / len(every), 0, []
    for height, equal in groupby(every):
        end = begin + len([*equal])
        if height:
            drawn.append(_bar(begin * width, end * width, height))
        begin = end
    return "".join(drawn)


def _bar(left: float, right: float, height: float) -> str:
    top = HEIGHT * (1 - height)
    return f"M{left:.1f},{HEIGHT}V{top:.1f}H{right:.1f}V{HEIGHT}Z"

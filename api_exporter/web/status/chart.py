"""The chart of peers and of the worst severity over the last hours, as SVG paths."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from api_exporter.attention.history import HISTORY_SECONDS, Sample

WIDTH, HEIGHT = 720, 120

_CALM = 0.25
"""The height of the strip without a critical finding or a warning."""


class Chart(Struct, frozen=True):
    """A chart of stacked areas: their total height is the number of peers.

    Attributes:
        unread: the times at which the peers were not read.
        start: the line at the start of the exporter; "" if it was earlier.
        severities: the strip below, by the class of its colour.
    """

    top: int
    peers: str
    connected: str
    unread: str
    start: str
    severities: Mapping[str, str]


def axis_top(count: int) -> int:
    """Return a count rounded up to two even digits and zeros, so its half is round."""
    unit: int = 2 * 10 ** max(0, len(str(count)) - 2)
    return max(1, -(-count // unit)) * unit


def chart(samples: Sequence[Sample | None], uptime: float) -> Chart:
    """Return the chart of the samples of all steps.

    Args:
        uptime: seconds since the start of the exporter.
    """
    top = axis_top(max((one.peers for one in samples if one), default=0))
    start = WIDTH * (1 - uptime / HISTORY_SECONDS)
    severities = [one and (one.severity or "info") for one in samples]
    return Chart(
        top=top,
        peers=_bars(one.peers / top if one else 0 for one in samples),
        connected=_bars(one.connected / top if one else 0 for one in samples),
        unread=_bars(0 if one else 1 for one in samples),
        start=f"M{start:.1f},0V{HEIGHT}" if start >= 0 else "",
        severities={
            "critical": _bars(one == "critical" for one in severities),
            "warning": _bars(0.6 * (one == "warning") for one in severities),
            "ok": _bars(_CALM * (one == "info") for one in severities),
        },
    )


def _bars(heights: Iterable[float]) -> str:
    """Return a bar for each step, from 0 to 1 high; equal ones are joined."""
    every = [*heights]
    begin, drawn = 0, []
    for height, equal in groupby(every):
        end = begin + len([*equal])
        if height:
            x, top, right = _x(begin, every), HEIGHT * (1 - height), _x(end, every)
            drawn.append(f"M{x},{HEIGHT}V{top:.1f}H{right}V{HEIGHT}Z")
        begin = end
    return "".join(drawn)


def _x(step: int, every: Sequence[float]) -> str:
    return f"{WIDTH * step / len(every):.1f}"

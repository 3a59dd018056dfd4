"""The chart of connected and disconnected peers over the last hours, as SVG paths."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from api_exporter.telemetry.history import HISTORY_SECONDS, PeerCount

WIDTH, HEIGHT = 720, 160

_SPANS = (600.0, 1800.0, 3600.0, 7200.0, HISTORY_SECONDS)


class Chart(Struct, frozen=True):
    """A chart of stacked areas: their total height is the number of peers."""

    seconds: float
    top: int
    newest: PeerCount
    old: bool
    numbers: tuple[str, str]
    peers: str
    connected: str


def axis_top(count: int) -> int:
    """Return a count rounded up to two even digits and zeros, so its half is round."""
    unit: int = 2 * 10 ** max(0, len(str(count)) - 2)
    return max(1, -(-count // unit)) * unit


def chart(runs: Sequence[Sequence[PeerCount]], now: float, step: float) -> Chart:
    """Return the chart of at least one run; it has a gap between two of them.

    Args:
        step: seconds for which the last count of a run is drawn.
    """
    known, newest = now - runs[0][0].at, runs[-1][-1]
    seconds = next((span for span in _SPANS if span >= known), HISTORY_SECONDS)
    top = axis_top(max(count.peers for run in runs for count in run))

    def area(number: Callable[[PeerCount], int]) -> str:
        drawn = []
        for run in runs:
            drawn.append(f"M{x(run[0].at)},{HEIGHT}")
            ends = [*(later.at for later in run[1:]), run[-1].at + step]
            for count, end in zip(run, ends, strict=True):
                drawn.append(f"V{HEIGHT * (1 - number(count) / top):.1f}H{x(end)}")
            drawn.append(f"V{HEIGHT}Z")
        return "".join(drawn)

    def x(at: float) -> str:
        return f"{min(WIDTH * (1 - (now - at) / seconds), WIDTH):.1f}"

    return Chart(
        seconds,
        top,
        newest,
        now - newest.at > 2 * step,
        (f"{newest.connected:,} connected", f"{newest.disconnected:,} disconnected"),
        area(lambda count: count.peers),
        area(lambda count: count.connected),
    )

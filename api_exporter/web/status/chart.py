"""The chart of connected and disconnected peers over the last hours, as SVG.

The browser stretches the picture; numbers and times are text around it.
"""

from collections.abc import Callable, Sequence

from twisted.web.template import Tag, tags

from api_exporter.telemetry.history import HISTORY_SECONDS, PeerCount
from api_exporter.web.status import formatting

WIDTH, HEIGHT = 720, 160

_MINUTE = 60.0
_SPANS = (10 * _MINUTE, 30 * _MINUTE, 60 * _MINUTE, 120 * _MINUTE, HISTORY_SECONDS)


def axis_top(count: int) -> int:
    """Return a count rounded up to two even digits and zeros, so its half is round."""
    unit: int = 2 * 10 ** max(0, len(str(count)) - 2)
    return max(1, -(-count // unit)) * unit


def span(runs: Sequence[Sequence[PeerCount]], now: float) -> float:
    """Return the displayed seconds: the shortest span that holds the first count."""
    known = now - runs[0][0].at
    return next((seconds for seconds in _SPANS if seconds >= known), HISTORY_SECONDS)


def chart(runs: Sequence[Sequence[PeerCount]], *, now: float, step: float) -> Tag:
    """Return a chart of stacked areas: their total height is the number of peers.

    Args:
        runs: at least one; the chart has a gap between two of them.
        step: seconds for which the last count of a run is drawn.
    """
    seconds = span(runs, now)
    top = axis_top(max(count.peers for run in runs for count in run))
    newest = runs[-1][-1]
    old = now - newest.at > 2 * step
    numbers = (
        f"{newest.connected:,} connected",
        f"{newest.disconnected:,} disconnected",
    )

    def x(at: float) -> str:
        return f"{min(WIDTH * (1 - (now - at) / seconds), WIDTH):.1f}"

    def y(peers: int) -> str:
        return f"{HEIGHT * (1 - peers / top):.1f}"

    drawing = Tag(
        "svg",
        attributes={
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": f"Peers over the last {formatting.long_duration(seconds)};"
            f" now {' and '.join(numbers)}",
        },
    )(
        _path("disconnected", _area(runs, step, x, lambda count: y(count.peers))),
        _path("connected", _area(runs, step, x, lambda count: y(count.connected))),
        _path("grid", f"M0,{HEIGHT / 2:.0f}H{WIDTH}"),
    )
    return tags.figure(
        tags.figcaption(
            [tags.span(n, class_=f"key {n.split()[1]}") for n in numbers],
            tags.span("at ", formatting.clock_time(newest.at, now), class_="when")
            if old
            else "",
        ),
        tags.div(
            tags.div([tags.span(f"{n:,}") for n in (top, top // 2, 0)], class_="y"),
            drawing,
            tags.div(
                tags.span(f"{formatting.short_duration(seconds)} ago"),
                tags.span(f"{formatting.short_duration(seconds / 2)} ago"),
                tags.span("now"),
                class_="x",
            ),
            class_="plot",
        ),
    )


def _area(
    runs: Sequence[Sequence[PeerCount]],
    step: float,
    x: Callable[[float], str],
    y: Callable[[PeerCount], str],
) -> str:
    drawn = []
    for run in runs:
        drawn.append(f"M{x(run[0].at)},{HEIGHT}")
        ends = [*(later.at for later in run[1:]), run[-1].at + step]
        for count, end in zip(run, ends, strict=True):
            drawn.append(f"V{y(count)}H{x(end)}")
        drawn.append(f"V{HEIGHT}Z")
    return "".join(drawn)


def _path(kind: str, drawn: str) -> Tag:
    return Tag("path", attributes={"class": kind, "d": drawn})

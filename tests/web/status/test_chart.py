"""The chart of the peers: in its frame, in proportion, with gaps left empty."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.history import PeerCount
from api_exporter.web.status import chart

NOW = 1_800_000_000.0


def count(ago: float, connected: int, disconnected: int) -> PeerCount:
    return PeerCount(at=NOW - ago, connected=connected, disconnected=disconnected)


class ChartTests(SynchronousTestCase):
    def drawn(self, *runs: list[PeerCount]) -> chart.Chart:
        return chart.chart(runs, now=NOW, step=60)

    def path(self, figure: chart.Chart, kind: str) -> str:
        return figure.connected if kind == "connected" else figure.peers

    def test_ceiling(self) -> None:
        """The top is round, even, at least the maximum and little more."""
        for most, top in ((0, 2), (1, 2), (7, 8), (15, 16), (99, 100), (218, 220)):
            self.assertEqual(top, chart.axis_top(most))
        for most in range(1, 3000):
            self.assertTrue(most <= chart.axis_top(most) <= 1.2 * most + 1, most)
            self.assertEqual(0, chart.axis_top(most) % 2)

    def test_span(self) -> None:
        """A new exporter shows minutes, an old one six hours."""
        for ago, span in ((0, 600), (601, 1800), (5000, 7200), (21000, 21600)):
            self.assertEqual(span, self.drawn([count(ago, 1, 1)]).seconds)

    def test_proportion(self) -> None:
        """The areas are as high as the number of peers; each run has its own."""
        figure = self.drawn([count(300, 25, 25), count(240, 50, 50)])
        for kind, path in (
            ("connected", "M360.0,160V120.0H432.0V80.0H504.0V160Z"),
            ("disconnected", "M360.0,160V80.0H432.0V0.0H504.0V160Z"),
        ):
            self.assertEqual(path, self.path(figure, kind))
        figure = self.drawn([count(590, 1, 0)], [count(120, 1, 0), count(60, 2, 0)])
        self.assertEqual(2, self.path(figure, "connected").count("Z"))

    def test_frame(self) -> None:
        """Nothing is drawn outside of the frame."""
        runs = [count(21600, 0, 0), count(21500, 0, 7)], [count(0, 100_000, 3)]
        figure = self.drawn(*runs)
        for kind in ("connected", "disconnected"):
            drawn = self.path(figure, kind)
            for x in re.findall(r"[MH](-?[\d.]+)", drawn):
                self.assertTrue(0 <= float(x) <= chart.WIDTH, x)
            for y in re.findall(r"[V,](-?[\d.]+)", drawn):
                self.assertTrue(0 <= float(y) <= chart.HEIGHT, y)

    def test_old(self) -> None:
        """Old numbers are shown with their time."""
        for ago, old in ((100, False), (600, True)):
            self.assertEqual(old, self.drawn([count(ago, 1, 1)]).old)

    def test_words(self) -> None:
        """The numbers have thousands and words."""
        figure = self.drawn([count(60, 1200, 34)])
        self.assertEqual(("1,200 connected", "34 disconnected"), figure.numbers)

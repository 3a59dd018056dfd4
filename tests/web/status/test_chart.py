"""The chart of the peers: in its frame, in proportion, with unknown times marked."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.history import HISTORY_SECONDS, Sample
from api_exporter.web.status import chart

DAY = 86400.0


class ChartTests(SynchronousTestCase):
    def test_ceiling(self) -> None:
        """The top is round, even, at least the maximum and little more."""
        for most, top in ((0, 2), (1, 2), (7, 8), (15, 16), (99, 100), (218, 220)):
            self.assertEqual(top, chart.axis_top(most))
        for most in range(1, 3000):
            self.assertTrue(most <= chart.axis_top(most) <= 1.2 * most + 1, most)
            self.assertEqual(0, chart.axis_top(most) % 2)

    def test_proportion(self) -> None:
        """The areas are as high as the number of peers; equal steps are one area."""
        half, full = Sample(50, 25, None), Sample(100, 50, None)
        drawn = chart.chart([None, None, half, half, full, None], DAY)
        self.assertEqual(
            "M240.0,120V90.0H480.0V120ZM480.0,120V60.0H600.0V120Z", drawn.connected
        )
        self.assertEqual(
            "M240.0,120V60.0H480.0V120ZM480.0,120V0.0H600.0V120Z", drawn.peers
        )
        self.assertEqual("", drawn.start)

    def test_unknown(self) -> None:
        """Nothing is drawn for a step that was not read, or has no peer."""
        samples = [None, Sample(0, 0, None)]
        drawn = chart.chart(samples, HISTORY_SECONDS / 2)
        self.assertEqual(("", ""), (drawn.peers, drawn.connected))
        self.assertEqual("M360.0,0V120", drawn.start)

    def test_severities(self) -> None:
        """Each step has a bar of its worst severity, higher the worse it is."""
        names = ("unread", "critical", "warning", "info", "none", "unread")
        self.assertEqual(
            {
                "unread": "M0.0,120V0.0H120.0V120ZM600.0,120V0.0H720.0V120Z",
                "critical": "M120.0,120V0.0H240.0V120Z",
                "warning": "M240.0,120V48.0H360.0V120Z",
                "ok": "M360.0,120V90.0H480.0V120ZM480.0,120V90.0H600.0V120Z",
            },
            chart.strip((name, 60) for name in names),
        )
        self.assertEqual({}, chart.strip([("unknown", 60)]))

    def test_frame(self) -> None:
        """Nothing is drawn outside of the frame."""
        steps = [
            Sample(n * 977, n * 311, "info") if n % 3 else None for n in range(360)
        ]
        drawn = chart.chart(steps, 0)
        for path in (
            drawn.peers,
            drawn.connected,
            drawn.start,
            *chart.strip([("unread", 7), ("critical", 353)]).values(),
        ):
            for x in re.findall(r"[MH](-?[\d.]+)", path):
                self.assertTrue(0 <= float(x) <= chart.WIDTH, x)
            for y in re.findall(r"[V,](-?[\d.]+)", path):
                self.assertTrue(0 <= float(y) <= chart.HEIGHT, y)

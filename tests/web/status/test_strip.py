"""The strip of the newest calls' durations."""

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.template import flattenString

from api_exporter.ports import Attempt
from api_exporter.web.status.strip import strip


def call(seconds: float, error: str = "") -> Attempt:
    return Attempt(
        path="api/peers",
        number=1,
        started=1_800_000_000.0,
        status=500 if error else 200,
        received=0,
        seconds=seconds,
        error=error,
        reason="http_5xx" if error else None,
    )


class StripTests(SynchronousTestCase):
    def test_bars(self) -> None:
        """A bar for each call, as high as it was long; one that failed has its tone."""
        calls = [call(0.1), call(0.4, "500"), call(0.0)]
        drawn = self.successResultOf(flattenString(None, strip(calls))).decode()
        self.assertEqual(3, drawn.count("<rect"))
        self.assertIn('class="bad" x="13" y="0.0" width="10" height="48.0"', drawn)
        self.assertIn('height="12.0"', drawn)
        self.assertIn('height="1.0"', drawn)
        self.assertIn("the longest: 400 ms for /api/peers", drawn)

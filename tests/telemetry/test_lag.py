"""The lag of the event loop, measured with a test clock."""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.process import LAG_INTERVAL, LagMeter


class LagMeterTests(SynchronousTestCase):
    def test_lag(self) -> None:
        """The delay of a timer is reported every five seconds."""
        clock, seen = Clock(), list[float]()
        meter = LagMeter(clock, seen.append)
        meter.stopService()  # without a start it does nothing
        meter.startService()
        clock.advance(LAG_INTERVAL)
        clock.advance(LAG_INTERVAL + 0.7)
        self.assertEqual([0.0, 0.7], [round(lag, 6) for lag in seen])
        self.assertEqual(5.0, LAG_INTERVAL)
        meter.stopService()
        self.assertFalse(meter.running)
        self.assertEqual([], clock.getDelayedCalls())

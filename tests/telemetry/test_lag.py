"""How late the event loop is, measured with a clock of our own."""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.lag import INTERVAL, LagMeter


class LagMeterTests(SynchronousTestCase):
    def test_lag(self) -> None:
        """What a timer is late by is reported, four times a second."""
        clock, seen = Clock(), list[float]()
        meter = LagMeter(clock, seen.append)
        meter.startService()
        clock.advance(INTERVAL)
        clock.advance(INTERVAL + 0.7)
        self.assertEqual([0.0, 0.7], [round(lag, 6) for lag in seen])
        meter.stopService()
        self.assertEqual([], clock.getDelayedCalls())

    def test_never_started(self) -> None:
        """Stopping what never ran does nothing."""
        clock = Clock()
        LagMeter(clock, lambda _: None).stopService()
        self.assertEqual([], clock.getDelayedCalls())

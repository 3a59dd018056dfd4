"""The lag of the event loop, measured with a test clock."""

import random

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

    def test_short_stalls(self) -> None:
        """Stalls shorter than the interval are seen in proportion to their length."""
        clock, chance, seen = Clock(), random.Random(1), list[float]()
        meter = LagMeter(clock, seen.append)
        meter.startService()
        for _ in range(2000):  # two seconds in 25, at any moment of them
            before = chance.uniform(0, 23)
            for step in (before, 2.0, 25 - before - 2.0):
                self._live(clock, step, at_once=step == 2.0)
        meter.stopService()
        late = sum(lag > 1.0 for lag in seen) / len(seen)
        self.assertLess(abs(late - 1.0 / 25), 0.005)

    @staticmethod
    def _live(clock: Clock, seconds: float, *, at_once: bool) -> None:
        """Advance the clock, with timers on time or in one stall."""
        end = clock.seconds() + seconds
        while not at_once and clock.calls and clock.calls[0].getTime() < end:
            clock.advance(clock.calls[0].getTime() - clock.seconds())
        clock.advance(end - clock.seconds())

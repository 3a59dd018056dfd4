"""The lag meter: how late the event loop is.

Each measurement is what anything else that was due at that moment had to wait, too. A
stall that is shorter than the interval is met in proportion to its length, a longer one
always, but only once. As refreshes are jittered, none can hide between two measurements
for long.
"""

from collections.abc import Callable

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime

INTERVAL = 1.0
"""Seconds between two measurements: at rest, most of what wakes the process."""


class LagMeter(Service):
    """Sets a timer again and again and tells by how many seconds it was late."""

    def __init__(self, clock: IReactorTime, observe: Callable[[float], None]) -> None:
        self._clock = clock
        self._observe = observe
        self._timer: IDelayedCall | None = None

    def startService(self) -> None:
        super().startService()
        self._set()

    def stopService(self) -> None:
        super().stopService()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        due = self._clock.seconds() + INTERVAL
        self._timer = self._clock.callLater(INTERVAL, self._fired, due)

    def _fired(self, due: float) -> None:
        self._observe(max(0.0, self._clock.seconds() - due))
        self._set()

"""Large bodies are received one at a time: so many accounts need no more memory.

It knows who has the place and who waits for it, and nothing of what they receive.
"""

from collections import deque
from typing import Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime

LARGE = 16 * 1024 * 1024
"""Bytes, unpacked: a body that is longer needs the place."""

ENOUGH = 1024 * 1024
TURN = 1.0
"""Bytes in so many seconds with which the place is kept, while others wait for it."""


class Body(Protocol):
    """One that is being received."""

    received: int
    """Bytes so far, unpacked."""

    def wait(self) -> None:
        """Receive nothing more for now."""

    def go_on(self) -> None:
        """Receive, after a `wait`."""


class LargeBodies:
    """The place, for all clients of the process.

    Whoever is slow gives it to the next one, and gets it back in its turn: a server
    that sends a byte a second must not keep the bodies of all others waiting. Each one
    has it for TURN seconds at least, so that all get on, and keeps its deadline.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._bodies: deque[Body] = deque()
        """The first one has the place; the others wait."""
        self._before = 0
        self._look: IDelayedCall | None = None

    def enter(self, body: Body) -> None:
        """It is large by now, and has to wait where another one has the place."""
        self._bodies.append(body)
        if len(self._bodies) > 1:
            body.wait()
            if self._look is None:
                self._watch()

    def leave(self, body: Body) -> None:
        """It has ended, however."""
        had_it = self._bodies[0] is body
        self._bodies.remove(body)
        if had_it and self._bodies:
            self._bodies[0].go_on()
        if self._look is not None and (had_it or len(self._bodies) < 2):
            self._look.cancel()
            self._watch()

    def _watch(self) -> None:
        """Look later at how much the first one has received, if others wait for it."""
        self._look = None
        if len(self._bodies) > 1:
            self._before = self._bodies[0].received
            self._look = self._clock.callLater(TURN, self._slow)

    def _slow(self) -> None:
        """Whether the first one is, in which case it is the next one's turn."""
        if self._bodies[0].received - self._before < ENOUGH:
            self._bodies.rotate(-1)
            self._bodies[-1].wait()
            self._bodies[0].go_on()
        self._watch()

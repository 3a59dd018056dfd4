"""Bodies of answers: each has a limit, and large ones are received one at a time.

So many accounts need no more memory.
"""

from collections import deque
from io import BytesIO
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IPushProducer,
    IReactorTime,
)
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from api_exporter.ports import UpstreamError
from api_exporter.upstream.gzip_agent import COMPLETE

LARGE = 16 * 1024 * 1024
"""Bytes, unpacked: a body that is longer needs the place."""

ENOUGH = 1024 * 1024
TURN = 1.0
"""Bytes in so many seconds with which the place is kept, while others wait for it."""


class LargeBodies:
    """The place, for all clients of the process.

    Whoever is slow gives it to the next one, and gets it back in its turn: a server
    that sends a byte a second must not keep the bodies of all others waiting. Each one
    has it for TURN seconds at least, so that all get on, and keeps its deadline.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._bodies: deque[ResponseBody] = deque()
        """The first one has the place; the others wait."""
        self._before = 0
        self._look: IDelayedCall | None = None

    def enter(self, body: "ResponseBody") -> None:
        """It is large by now, and has to wait where another one has the place."""
        self._bodies.append(body)
        if len(self._bodies) > 1:
            body.wait()
            if self._look is None:
                self._watch()

    def leave(self, body: "ResponseBody") -> None:
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


class ResponseBody(Protocol):
    """Gathers a body up to a limit and cuts the connection there, or when cancelled.

    Nothing is read while it waits for the place of large ones.

    Args:
        large: where bodies of all clients wait for each other.

    Attributes:
        status: of HTTP; None while there is no answer.
        limit: bytes of the body.
        received: bytes of the body so far.
        problem: why the body is not wanted at all, if it is not.
        whole: the body. It fails with the problem, or where the body is too long or
            cannot be unpacked.
    """

    status: int | None = None
    received = 0
    limit = 0
    problem: UpstreamError | None = None

    def __init__(self, clock: IReactorTime, large: LargeBodies | None = None) -> None:
        self.whole: Deferred[bytes] = Deferred(lambda _: self._give_up())
        self._place = LargeBodies(clock) if large is None else large
        self._large = False
        self._body = BytesIO()  # joins nothing: its value is its buffer

    def connectionMade(self) -> None:
        if self.problem is not None:
            self._refuse(self.problem)

    def dataReceived(self, data: bytes) -> None:
        if self.whole.called:  # given up, and this came before the connection noticed
            return
        self.received += len(data)
        if self.received > self.limit:
            message = f"the body is longer than {self.limit} bytes"
            self._refuse(UpstreamError("too_large", message))
            return
        self._body.write(data)
        if self.received > LARGE and not self._large:
            self._large = True
            self._place.enter(self)

    def connectionLost(self, reason: Failure | None = None) -> None:
        if self.whole.called:
            return
        if reason is None or reason.check(*COMPLETE):
            body = self._body.getvalue()
            self._end()
            self.whole.callback(body)
        else:
            self._end()
            self.whole.errback(reason)

    def wait(self) -> None:
        """Receive nothing for now."""
        cast("IPushProducer", self.transport).pauseProducing()

    def go_on(self) -> None:
        cast("IPushProducer", self.transport).resumeProducing()

    def _refuse(self, problem: UpstreamError) -> None:
        self._give_up()
        self.whole.errback(problem)

    def _end(self) -> None:
        self._body.close()
        if self._large:
            self._large = False
            self._place.leave(self)

    def _give_up(self) -> None:
        self._end()
        if self.transport is not None:
            cast("IPushProducer", self.transport).stopProducing()

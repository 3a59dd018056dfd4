"""An answer's body, gathered up to a limit."""

from io import BytesIO
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from api_exporter.ports import UpstreamError
from api_exporter.upstream.gzip_agent import COMPLETE, abort
from api_exporter.upstream.large_bodies import LARGE, LargeBodies


class Body(Protocol):
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
        """Do so again."""
        cast("IPushProducer", self.transport).resumeProducing()

    def _refuse(self, problem: UpstreamError) -> None:
        self._give_up()
        self.whole.errback(problem)

    def _end(self) -> None:
        """Keep nothing."""
        self._body.close()
        if self._large:
            self._large = False
            self._place.leave(self)

    def _give_up(self) -> None:
        self._end()
        abort(self.transport)

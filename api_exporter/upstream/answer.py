"""An answer's body, gathered and unpacked up to a limit."""

import zlib
from io import BytesIO
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss

from api_exporter.ports import UpstreamError
from api_exporter.upstream.large import LARGE, LargeBodies

_STEP = 256 * 1024
"""Bytes unpacked at one go: a millisecond's work. A kilobyte may become a million."""

_OVERHEAD = 1024 * 1024
"""Bytes by which something packed may be longer than what it holds."""

_GZIP = 16 + zlib.MAX_WBITS


class Answer(Protocol):
    """Gathers a body up to a limit and cuts the connection there, or when cancelled.

    A gzipped one is unpacked as it comes, in steps; nothing more is read meanwhile, nor
    while it waits for the place of large ones.

    Args:
        large: where bodies of all clients wait for each other.

    Attributes:
        status: of HTTP; None while there is no answer.
        limit: bytes of the unpacked body.
        received: bytes of the unpacked body so far.
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
        self._clock = clock
        self._place = LargeBodies(clock) if large is None else large
        self._large = False
        self._body = BytesIO()  # joins nothing: its value is its buffer
        self._inflate: zlib._Decompress | None = None
        self._packed: list[bytes] = []
        self._arrived = 0
        self._step: IDelayedCall | None = None
        self._unpacking = self._waiting = self._paused = False
        self._complete = False

    def unpack(self) -> None:
        """What will come is gzipped."""
        self._inflate = zlib.decompressobj(_GZIP)

    def connectionMade(self) -> None:
        if self.problem is not None:
            self._refuse(self.problem)

    def dataReceived(self, data: bytes) -> None:
        if self.whole.called:  # given up, and this came before the connection noticed
            return
        if self._inflate is None:
            self._gather(data)
        else:
            self._arrived += len(data)
            if self._arrived > self.limit + _OVERHEAD:
                self._too_long()
                return
            self._packed.append(data)
            self._unpack_soon()  # not now: much may be done for these bytes already

    def connectionLost(self, reason: Failure | None = None) -> None:
        # PotentialDataLoss: neither a length nor chunks were promised, and the server
        # closed. So does HTTP/1.0 end a body; what is missing shows when it is decoded.
        if self.whole.called:
            return
        if reason is None or reason.check(ResponseDone, PotentialDataLoss):
            self._complete = True
            if self._inflate is None or not (self._step or self._waiting):
                self._finish()
        else:
            self._end()
            self.whole.errback(reason)

    def wait(self) -> None:
        """Receive and unpack nothing for now."""
        self._waiting = True
        if self._step is not None:
            self._step.cancel()
            self._step = None
        self._pause()

    def go_on(self) -> None:
        """Do so again."""
        self._waiting = False
        self._pause()
        if self._inflate is not None:
            self._unpack_soon()

    def _unpack_soon(self) -> None:
        if self._step is None and not self._waiting:
            self._step = self._clock.callLater(0, self._unpack, self._inflate)

    def _unpack(self, inflate: "zlib._Decompress") -> None:
        """One step, and the next one after all else has had its turn."""
        self._step = None
        try:
            plain = inflate.decompress(b"".join(self._packed), _STEP)
        except zlib.error as error:
            self._undecodable(f"the gzip of the body is damaged: {error}")
            return
        self._packed = [inflate.unconsumed_tail]
        self._gather(plain)
        if self.whole.called:
            return
        if inflate.unused_data:
            self._undecodable("something follows the gzip of the body")
            return
        self._unpacking = bool(inflate.unconsumed_tail) or len(plain) == _STEP
        if self._complete and not self._unpacking:
            self._finish()
            return
        self._pause()
        if self._unpacking:
            self._unpack_soon()

    def _pause(self) -> None:
        """Let nothing come while there is a reason for that; there are two."""
        wanted = self._unpacking or self._waiting
        if wanted == self._paused:
            return
        self._paused = wanted
        transport = cast("IPushProducer", self.transport)
        if wanted:
            transport.pauseProducing()
        else:
            transport.resumeProducing()

    def _gather(self, data: bytes) -> None:
        self.received += len(data)
        if self.received > self.limit:
            self._too_long()
        else:
            self._body.write(data)
            if self.received > LARGE and not self._large:
                self._large = True
                self._place.enter(self)

    def _finish(self) -> None:
        if self._inflate is not None and not self._inflate.eof:
            self._undecodable("the gzip of the body is cut short")
            return
        body = self._body.getvalue()
        self._end()
        self.whole.callback(body)

    def _too_long(self) -> None:
        words = f"the body is longer than {self.limit} bytes"
        self._refuse(UpstreamError("too_large", words))

    def _undecodable(self, why: str) -> None:
        self._refuse(UpstreamError("decode", why))

    def _refuse(self, problem: UpstreamError) -> None:
        self._give_up()
        self.whole.errback(problem)

    def _end(self) -> None:
        """Keep nothing."""
        self._body.close()
        self._packed = []
        if self._step is not None:
            self._step.cancel()
            self._step = None
        if self._large:
            self._large = False
            self._place.leave(self)

    def _give_up(self) -> None:
        self._end()
        # What Twisted gives a body's protocol as its transport cannot abort (#8227);
        # closing in good order would wait for a peer that may never answer.
        producer = getattr(self.transport, "_producer", None)
        if producer is not None:
            producer.abortConnection()

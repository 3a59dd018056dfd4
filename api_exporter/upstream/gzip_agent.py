"""An agent that asks for gzip and unpacks it, below treq: one layer of it, in steps.

treq would unpack whatever `Content-Encoding` names, without bound; it finds none.
"""

import zlib
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IProtocol,
    IPushProducer,
    IReactorTime,
    ITransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.components import proxyForInterface
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from api_exporter.ports import Reason, UpstreamError
from api_exporter.upstream.headers import GZIP, codings

_STEP = 256 * 1024
"""Bytes unpacked at one go: a millisecond's work. A kilobyte may become a million."""

_OVERHEAD = 1024 * 1024
"""Bytes by which something packed may be longer than what it holds."""

_GZIP = 16 + zlib.MAX_WBITS

_CODINGS = {GZIP, "br", "compress", "deflate", "x-gzip", "zstd"}
"""That are named: an upstream might say anything, even the token."""

COMPLETE = (ResponseDone, PotentialDataLoss)
"""How a body ends in good order.

PotentialDataLoss: neither a length nor chunks were promised, and the server closed. So
does HTTP/1.0 end a body; what is missing shows when it is decoded.
"""


@implementer(IAgent)
class GzipAgent:
    """Asks for gzip and unpacks it. A body in another coding fails and is not read."""

    def __init__(self, agent: IAgent, clock: IReactorTime) -> None:
        self._agent = agent
        self._clock = clock

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,  # noqa: N803 - Twisted's name
    ) -> Deferred[IResponse]:
        headers = Headers() if headers is None else headers.copy()
        headers.setRawHeaders(b"Accept-Encoding", [GZIP.encode()])
        asked = self._agent.request(method, uri, headers, bodyProducer)
        return asked.addCallback(self._unpacked)

    def _unpacked(self, response: IResponse) -> IResponse:
        named = codings(response.headers)
        response.headers.removeHeader(b"Content-Encoding")
        if not named:
            return response
        why = ""
        if named != [GZIP]:
            known = ", ".join(n if n in _CODINGS else "unknown" for n in named)
            why = f"encoded as {known!r}, but gzip was requested"
        unpacked: IResponse = GzipResponse(response, self._clock, why)
        return unpacked


class GzipResponse(proxyForInterface(IResponse)):  # type: ignore[misc]
    """One whose body is delivered unpacked, or fails where there is a reason why."""

    length = UNKNOWN_LENGTH

    def __init__(self, response: IResponse, clock: IReactorTime, why: str) -> None:
        super().__init__(response)
        self._clock = clock
        self._why = why

    def deliverBody(self, protocol: IProtocol) -> None:
        self.original.deliverBody(Gunzip(protocol, self._clock, self._why))


class Gunzip(Protocol):
    """Unpacks a body as it comes, for the protocol whose transport it is.

    It does so in steps. Nothing more is read meanwhile, nor while the protocol pauses.

    Args:
        why: the body is not wanted at all, if it is not.
    """

    def __init__(self, protocol: IProtocol, clock: IReactorTime, why: str = "") -> None:
        self._protocol = protocol
        self._clock = clock
        self._why = why
        self._inflate = zlib.decompressobj(_GZIP)
        self._packed: list[bytes] = []
        self._excess = 0
        """Bytes by which what was unpacked is longer than what it held."""
        self._step: IDelayedCall | None = None
        self._unpacking = self._waiting = self._paused = False
        self._complete: Failure | None = None
        self._over = False

    def connectionMade(self) -> None:
        self._protocol.makeConnection(cast("ITransport", self))
        if self._why:
            self._refuse("decode", self._why)

    def dataReceived(self, data: bytes) -> None:
        if not self._over:
            self._packed.append(data)
            self._unpack_soon()  # not now: much may be done for these bytes already

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._over:
            return
        if not reason.check(*COMPLETE):
            self._end(reason)
            return
        self._complete = reason
        if not (self._step or self._waiting):
            self._finish(reason)

    def pauseProducing(self) -> None:
        """Receive and unpack nothing for now."""
        self._waiting = True
        self._stop()
        self._pause()

    def resumeProducing(self) -> None:
        self._waiting = False
        self._pause()
        self._unpack_soon()

    def stopProducing(self) -> None:
        """Unpack nothing more."""
        self._forget()
        cast("IPushProducer", self.transport).stopProducing()

    def _unpack_soon(self) -> None:
        if self._step is None and not self._waiting:
            self._step = self._clock.callLater(0, self._unpack)

    def _unpack(self) -> None:
        """One step, and the next one after all else has had its turn."""
        self._step = None
        packed = b"".join(self._packed)
        if self._inflate.eof and packed:  # another member, which Go and curl read, too
            self._inflate = zlib.decompressobj(_GZIP)
        try:
            plain = self._inflate.decompress(packed, _STEP)
        except zlib.error as error:
            self._refuse("decode", f"the gzip body is damaged: {error}")
            return
        rest = self._inflate.unconsumed_tail or self._inflate.unused_data
        self._packed = [rest]
        self._excess += len(packed) - len(rest) - len(plain)
        if self._excess > _OVERHEAD:
            message = "the gzip body has extra data at its end"
            self._refuse("too_large", message)
            return
        self._protocol.dataReceived(plain)
        if self._over:
            return
        self._unpacking = bool(rest) or len(plain) == _STEP
        if self._complete is not None and not self._unpacking:
            self._finish(self._complete)
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

    def _finish(self, reason: Failure) -> None:
        if self._inflate.eof:
            self._end(reason)
        else:
            self._refuse("decode", "the gzip body is incomplete")

    def _refuse(self, reason: Reason, why: str) -> None:
        cast("IPushProducer", self.transport).stopProducing()
        self._end(Failure(UpstreamError(reason, why)))

    def _end(self, reason: Failure) -> None:
        self._forget()
        self._protocol.connectionLost(reason)

    def _forget(self) -> None:
        self._over = True
        self._stop()
        self._packed = []

    def _stop(self) -> None:
        if self._step is not None:
            self._step.cancel()
            self._step = None

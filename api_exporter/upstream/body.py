"""Response bodies: requested as gzip, received as sent, and limited."""

from collections.abc import Callable
from io import BytesIO
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.upstream.headers import GZIP, RECEIVED_ENCODING, codings

LONGEST_BODY_BYTES = 256 * 1024 * 1024
"""Bytes of an unpacked body: more than a hundred thousand peers need."""

MAX_BODIES_BYTES = LONGEST_BODY_BYTES
"""Bytes that the bodies of all accounts may have before some of them wait."""

LARGE_BODY_BYTES = 16 * 1024 * 1024
"""Bytes up to which a body is received even if the memory for bodies is full."""

_KNOWN_CODINGS = {GZIP, "br", "compress", "deflate", "x-gzip", "zstd"}
"""Codings that error messages may repeat; others could contain the token."""

_COMPLETE = (ResponseDone, PotentialDataLoss)
"""Twisted's reasons for the complete end of a body.

PotentialDataLoss: the response has no length and no chunks, and the server closed the
connection, as in HTTP/1.0. Decoding detects missing bytes."""


@implementer(IAgent)
class GzipAgent:
    """Requests gzip, and hides it from treq, which would unpack without a limit."""

    def __init__(self, agent: IAgent) -> None:
        self._agent = agent

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,  # noqa: N803 - Twisted's name
    ) -> Deferred[IResponse]:
        headers = Headers() if headers is None else headers.copy()
        headers.setRawHeaders(b"Accept-Encoding", [GZIP.encode()])
        requested = self._agent.request(method, uri, headers, bodyProducer)
        return requested.addCallback(_hide_encoding)


def _hide_encoding(response: IResponse) -> IResponse:
    named = response.headers.getRawHeaders(b"Content-Encoding", [])
    response.headers.removeHeader(b"Content-Encoding")
    response.headers.setRawHeaders(RECEIVED_ENCODING, named)
    return response


class BodyMemory:
    """The memory for bodies that are not decoded yet, of all clients of the process.

    Above MAX_BODIES_BYTES, no body above LARGE_BODY_BYTES is received as long as a body
    waits to be decoded. If none waits, only the longest one proceeds. So all
    bodies have at most MAX_BODIES_BYTES, and LARGE_BODY_BYTES for each connection. A
    server that stops in the middle holds up the other large bodies until its deadline.
    Unpacked data of logs does not count.
    """

    def __init__(self) -> None:
        self._receiving: set[BodyReceiver] = set()
        self._received = self._waiting = 0
        self._full = False

    def add(self, body: "BodyReceiver") -> None:
        self._receiving.add(body)

    def receive(self, size: int) -> None:
        """Count a piece of a body that is being received."""
        self._received += size
        self.update()

    def discard(self, body: "BodyReceiver") -> None:
        if body in self._receiving:
            self._receiving.remove(body)
            self._received -= body.received
            self.update()

    def reserve(self, size: int) -> Callable[[], None]:
        """Count a body until it is decoded. Return a function that ends this."""
        self._waiting += size
        self.update()

        def release() -> None:
            self._waiting -= size
            self.update()

        return release

    def update(self) -> None:
        """Pause and resume connections so that the limits hold."""
        was_full = self._full
        self._full = full = self._received + self._waiting > MAX_BODIES_BYTES
        if not full and not was_full:
            return  # none is paused
        longest = max((body.received for body in self._receiving), default=0)
        for body in self._receiving:
            others = self._waiting > 0 or body.received < longest
            body.pause(full and body.received > LARGE_BODY_BYTES and others)


class BodyReceiver(Protocol):
    """A protocol that collects a body up to a limit, and aborts the connection there.

    Attributes:
        packed: True if the body is gzip.
        limit: the most bytes of the body, both packed and unpacked.
    """

    status: int | None = None
    packed = False
    limit = 0
    received = 0

    def __init__(self, memory: BodyMemory) -> None:
        self._result: Deferred[bytes] = Deferred(lambda _: self._give_up())
        self._memory = memory
        self._problem: UpstreamError | None = None
        self._paused = False
        self._body = BytesIO()  # getvalue() does not copy

    def receive(
        self, response: IResponse, limit: int, problem: UpstreamError | None = None
    ) -> Deferred[bytes]:
        """Return the body as it was sent. Cancelling the result aborts the connection.

        The result fails with the problem, or with UpstreamError if the body is too long
        or has a coding other than gzip.

        Args:
            problem: why the body is useless and is not read; None if it is not.
        """
        named = codings(response.headers)
        if named not in ([], [GZIP]):
            known = ", ".join(n if n in _KNOWN_CODINGS else "unknown" for n in named)
            message = f"encoded as {known!r}, but gzip was requested"
            problem = problem or UpstreamError("decode", message)
        self.packed = bool(named)
        self.limit = limit
        self._problem = problem
        response.deliverBody(self)
        return self._result

    def connectionMade(self) -> None:
        self._memory.add(self)
        if self._problem is not None:
            self._refuse(self._problem)

    def dataReceived(self, data: bytes) -> None:
        if self._result.called:  # data that arrives before the abort takes effect
            return
        self.received += len(data)
        self._memory.receive(len(data))
        if self.received > self.limit:
            message = f"the body is longer than {self.limit} bytes"
            self._refuse(UpstreamError("too_large", message))
            return
        self._body.write(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        if self._result.called:
            return
        body = self._body.getvalue()
        self._end()
        if reason is None or reason.check(*_COMPLETE):
            self._result.callback(body)
        else:
            self._result.errback(reason)

    def pause(self, paused: bool) -> None:
        if paused == self._paused:
            return
        self._paused = paused
        transport = cast("IPushProducer", self.transport)
        if paused:
            transport.pauseProducing()
        else:
            transport.resumeProducing()

    def _refuse(self, problem: UpstreamError) -> None:
        self._give_up()
        self._result.errback(problem)

    def _end(self) -> None:
        self._body.close()
        self._memory.discard(self)

    def _give_up(self) -> None:
        self._end()
        if self.transport is not None:
            cast("IPushProducer", self.transport).stopProducing()

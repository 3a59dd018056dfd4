"""A push producer that sends a long body as fast as the client receives it."""

from collections.abc import Iterable, Iterator

from twisted.internet.interfaces import IPushProducer
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

MAX_SEND_BYTES = 512 * 1024
"""Bytes of one write to the socket. Twisted's default costs a third of throughput."""

MAX_TLS_SLICE_BYTES = 64 * 1024
"""Bytes of a slice with TLS: encrypted, unsent bytes are not shared by clients."""


def send(request: Request, slices: Iterable[bytes], length: int) -> int:
    """Send a body of this length, to HEAD only its headers; return NOT_DONE_YET."""
    request.setHeader(b"Content-Length", b"%d" % length)
    if request.method == b"HEAD":
        request.finish()
    else:
        Sender(request, iter(slices)).start()
    return NOT_DONE_YET


@implementer(IPushProducer)
class Sender:
    """Writes slices to the transport, one each time the previous one has been sent.

    Requests may share the slices: a slow client holds at most one slice's copy. It is a
    push producer because Twisted drives pull producers through the global reactor.
    """

    def __init__(self, request: Request, slices: Iterator[bytes]) -> None:
        self._request = request
        self._slices = _split(slices) if request.isSecure() else slices

    def start(self) -> None:
        """Write until the transport pauses this producer, to resume it later."""
        transport = self._request.channel.transport
        if transport is not None and hasattr(transport, "SEND_LIMIT"):
            transport.SEND_LIMIT = MAX_SEND_BYTES
        self._request.registerProducer(self, True)
        self.resumeProducing()

    def resumeProducing(self) -> None:
        self._paused = False
        while not self._paused:
            slice_ = next(self._slices, None)
            if slice_ is None:
                self._request.unregisterProducer()
                self._request.finish()
                return
            self._request.write(slice_)

    def pauseProducing(self) -> None:
        self._paused = True

    def stopProducing(self) -> None:
        """Release the slices, and the transport's unsent bytes."""
        self._slices = iter(())
        self._request.unregisterProducer()  # breaks a reference cycle


def _split(slices: Iterator[bytes]) -> Iterator[bytes]:
    for whole in slices:
        for start in range(0, len(whole), MAX_TLS_SLICE_BYTES):
            yield whole[start : start + MAX_TLS_SLICE_BYTES]

"""A push producer: sends a long body as fast as the client takes it."""

from collections.abc import Iterator

from twisted.internet.interfaces import IPushProducer
from twisted.web.server import Request
from zope.interface import implementer

MOST_AT_ONCE = 512 * 1024
"""Bytes: a whole slice. Twisted's quarter of that costs a third of the throughput."""

MOST_ENCRYPTED = 64 * 1024
"""Bytes: what TLS has encrypted but not sent is each reader's own."""


@implementer(IPushProducer)
class Sender:
    """Hands slices to the transport, one whenever it has sent the one before.

    Slices may belong to many requests: a slow reader holds at most the copy of one. A
    push producer, because Twisted drives pull producers through the global reactor.
    """

    def __init__(self, request: Request, slices: Iterator[bytes]) -> None:
        self._request = request
        self._slices = _shorter(slices) if request.isSecure() else slices
        self._paused = False

    def start(self) -> None:
        """Write until the transport has enough; it asks for more by itself."""
        transport = self._request.channel.transport
        if transport is not None and hasattr(
            transport, "SEND_LIMIT"
        ):  # what it hands to the system at one go
            transport.SEND_LIMIT = MOST_AT_ONCE
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
        """Release the slices, and what the transport could not send of them."""
        self._paused = True
        self._slices = iter(())
        self._request.unregisterProducer()  # it would keep the transport for the gc


def _shorter(slices: Iterator[bytes]) -> Iterator[bytes]:
    for whole in slices:
        for start in range(0, len(whole), MOST_ENCRYPTED):
            yield whole[start : start + MOST_ENCRYPTED]

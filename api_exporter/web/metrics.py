"""The metrics page: ready bytes and a small tail of our own, with no work per peer."""

from collections.abc import Callable

from twisted.internet.interfaces import IPushProducer
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from api_exporter import negotiation
from api_exporter.pages import Body, Pages, Piece, piece
from api_exporter.telemetry import Telemetry
from api_exporter.web.page import Page

TAIL_LIFE = 1.0
"""Seconds for which our own metrics are rendered once for all scrapes."""


class Metrics(Page):
    """The collectors' pages, then our own metrics, in the format that is asked for.

    Args:
        seconds: a clock.
    """

    def __init__(
        self, *, pages: Pages, telemetry: Telemetry, seconds: Callable[[], float]
    ) -> None:
        super().__init__()
        self._pages = pages
        self._telemetry = telemetry
        self._seconds = seconds
        self._tails: dict[bool, tuple[float, Piece]] = {}

    def render_GET(self, request: Request) -> bytes | int:
        """The page, piece by piece."""
        in_flight = self._telemetry.scrapes_in_flight
        in_flight.inc()
        request.notifyFinish().addBoth(lambda _: in_flight.dec())
        wanted = negotiation.content_type(_header(request, b"accept"))
        whole = self._pages.whole()
        tail = self._tail(in_openmetrics=wanted.format.openmetrics)
        if negotiation.accepts_gzip(_header(request, b"accept-encoding")):
            body = whole.gzipped(tail)
            request.setHeader(b"Content-Encoding", b"gzip")
        else:
            body = whole.plain(tail)
        request.setHeader(b"Content-Type", wanted.header())
        request.setHeader(b"Content-Length", b"%d" % body.length)
        request.setHeader(b"Vary", b"Accept, Accept-Encoding")
        if request.method == b"HEAD":
            return b""
        Sender(request, body).start()
        return NOT_DONE_YET

    def _tail(self, *, in_openmetrics: bool) -> Piece:
        now = self._seconds()
        made, tail = self._tails.get(in_openmetrics, (-TAIL_LIFE, None))
        if tail is None or not 0 <= now - made < TAIL_LIFE:
            text = self._telemetry.text(in_openmetrics=in_openmetrics)
            tail = piece(text, last=True)
            self._tails[in_openmetrics] = now, tail
        return tail


@implementer(IPushProducer)
class Sender:
    """Hands slices to the transport, one whenever it has sent the one before.

    The slices belong to all scrapes: a slow reader holds at most the copy of one.
    """

    def __init__(self, request: Request, body: Body) -> None:
        self._request = request
        self._slices = iter(body.slices)
        self._paused = False

    def start(self) -> None:
        """Write until the transport has enough; it asks for more by itself."""
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
        """The reader has gone."""
        self._paused = True
        self._slices = iter(())


def _header(request: Request, name: bytes) -> str | None:
    """All fields of that name as one list (RFC 9110, 5.3)."""
    values = request.requestHeaders.getRawHeaders(name)
    return b",".join(values).decode("latin-1") if values else None

"""The metrics page: cached bytes and the exporter's own metrics; no work per peer."""

from prometheus_client import CollectorRegistry
from twisted.web.server import Request

from api_exporter.exposition import negotiation
from api_exporter.exposition.pages import Pages, Piece, piece
from api_exporter.serving.page import ErrorPage, ReadOnlyPage
from api_exporter.serving.sender import send
from api_exporter.telemetry.text import text
from api_exporter.web.collector_filter import collector_filter
from api_exporter.web.context import SiteContext

_EMPTY_TAIL = {
    openmetrics: piece(text(in_openmetrics=openmetrics), last=True)
    for openmetrics in (False, True)
}
"""The end of a page without the exporter's own metrics."""


class Metrics(ReadOnlyPage):
    """The collectors' pages, then the exporter's own metrics, as negotiated."""

    def __init__(
        self, pages: Pages, *registries: CollectorRegistry, context: SiteContext
    ) -> None:
        super().__init__()
        self._pages = pages
        self._registries = registries
        self._in_flight = context.process.scrapes_in_flight
        self._tails = context.metric_tails

    def render_GET(self, request: Request) -> bytes | int:
        self._in_flight.inc()
        request.notifyFinish().addBoth(lambda _: self._in_flight.dec())
        try:
            chosen = collector_filter(request.args, self._pages.names)
        except ValueError as error:
            return ErrorPage(400, str(error)).render(request)
        content_type = negotiation.content_type(_header(request, b"accept"))
        whole = self._pages.whole(chosen.collectors)
        openmetrics = content_type.format.openmetrics
        tail = self._tail(openmetrics) if chosen.has_own else _EMPTY_TAIL[openmetrics]
        if negotiation.accepts_gzip(_header(request, b"accept-encoding")):
            body = whole.gzipped(tail)
            request.setHeader(b"Content-Encoding", b"gzip")
        else:
            body = whole.plain(tail)
        request.setHeader(b"Content-Type", content_type.header())
        request.setHeader(b"Vary", b"Accept, Accept-Encoding")
        return send(request, body.slices, body.length)

    def _tail(self, openmetrics: bool) -> Piece:
        def make() -> Piece:
            own = text(*self._registries, in_openmetrics=openmetrics)
            return piece(own, last=True)

        return self._tails.get((self, openmetrics), make)


def _header(request: Request, name: bytes) -> str | None:
    values = request.requestHeaders.getRawHeaders(name)
    return b",".join(values).decode("latin-1") if values else None

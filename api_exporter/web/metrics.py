"""The metrics page: cached bytes and the exporter's own metrics; no work per peer."""

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry
from twisted.web.server import Request

from api_exporter.exposition import negotiation
from api_exporter.exposition.pages import Pages, piece
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import error_line
from api_exporter.serving.sender import send
from api_exporter.telemetry.gauges import text
from api_exporter.web.account_page import AccountPage

EXPORTER = "exporter"
"""The name of the exporter's own metrics, which are included unless excluded."""


def collector_filter(
    query: Mapping[bytes, Sequence[bytes]], names: Sequence[str]
) -> tuple[frozenset[str] | None, bool]:
    """Parse `?collect[]=peers` or `?exclude[]=users`; raise ValueError with a line.

    Return the selected collectors, None for all, and whether the exporter's own metrics
    are selected.
    """
    included = _parse(query, "collect[]", names)
    excluded = _parse(query, "exclude[]", (*names, EXPORTER))
    if included and excluded - {EXPORTER}:
        raise ValueError(
            "collect[] and exclude[] exclude each other, except exclude[]=exporter"
        )
    has_own = EXPORTER not in excluded
    if included:
        return included, has_own
    return (frozenset(names) - excluded if excluded - {EXPORTER} else None), has_own


def _parse(
    query: Mapping[bytes, Sequence[bytes]], parameter: str, allowed: Sequence[str]
) -> frozenset[str]:
    values = [value.decode("latin-1") for value in query.get(parameter.encode(), ())]
    for value in values:
        if value not in allowed:
            shown = ascii(value[:30])
            if not allowed:
                raise ValueError(
                    f"{parameter}: {shown}: name an account (account=NAME)"
                )
            raise ValueError(f"{parameter}: {shown} is not one of {', '.join(allowed)}")
    return frozenset(values)


class Metrics(AccountPage):
    """The collectors' pages, then the exporter's own metrics, as negotiated.

    With several accounts, the page without an account has the metrics of the process.
    """

    def one(self, request: Request, network: AccountNetwork) -> bytes | int:
        process = () if network.account else (self.context.process.registry,)
        return self._send(request, network.pages, network.telemetry.registry, *process)

    def many(self, request: Request) -> bytes | int:
        return self._send(request, Pages([]), self.context.process.registry)

    def _send(
        self, request: Request, pages: Pages, *registries: CollectorRegistry
    ) -> bytes | int:
        in_flight = self.context.process.scrapes_in_flight
        in_flight.inc()
        request.notifyFinish().addBoth(lambda _: in_flight.dec())
        try:
            collectors, has_own = collector_filter(request.args, pages.names)
        except ValueError as error:
            return error_line(request, 400, str(error))
        content_type = negotiation.content_type(_header(request, b"accept"))
        whole = pages.whole(collectors)
        own = registries if has_own else ()
        openmetrics = content_type.format.openmetrics
        tail = self.context.own_metrics.get(
            (own, openmetrics),
            lambda: piece(text(*own, in_openmetrics=openmetrics), last=True),
        )
        if negotiation.accepts_gzip(_header(request, b"accept-encoding")):
            body = whole.gzipped(tail)
            request.setHeader(b"Content-Encoding", b"gzip")
        else:
            body = whole.plain(tail)
        request.setHeader(b"Content-Type", content_type.header())
        request.setHeader(b"Vary", b"Accept, Accept-Encoding")
        return send(request, body.slices, body.length)


def _header(request: Request, name: bytes) -> str | None:
    values = request.requestHeaders.getRawHeaders(name)
    return b",".join(values).decode("latin-1") if values else None

"""When certificates end: the upstream's, and our own where a gateway wants one."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class CertificateEnds(Collector):
    """Absent until there is something to tell.

    Args:
        upstream: seconds since the epoch, None where it is not known.
        client: likewise.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        upstream: Callable[[], float | None],
        client: Callable[[], float | None],
    ) -> None:
        self._ends = (
            (
                "api_exporter_upstream_certificate_expiration_timestamp_seconds",
                "When the upstream's certificate expires, as it was when it last"
                " answered on a new connection.",
                upstream,
            ),
            (
                "api_exporter_client_certificate_expiration_timestamp_seconds",
                "When our own certificate expires, that of UPSTREAM_CLIENT_CERT_FILE.",
                client,
            ),
        )
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for name, words, end in self._ends:
            value = end()
            if value is not None:
                yield GaugeMetricFamily(name, words, value=value)

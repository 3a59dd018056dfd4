"""How much of the network needs attention."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


def attention(
    registry: CollectorRegistry, counts: Callable[[], Mapping[str, int]]
) -> None:
    """A gauge of an account's findings.

    Args:
        counts: by severity; empty while nothing is known.
    """
    registry.register(_Attention(counts))


class _Attention(Collector):
    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "api_exporter_attention",
            "What needs attention in the network, as the status page lists it.",
            labels=["severity"],
        )
        for severity, count in self._counts().items():
            family.add_metric([severity], count)
        yield family

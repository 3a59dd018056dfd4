"""Our own metrics as text, one registry after the other."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, disable_created_metrics, exposition
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from api_exporter.exposition.text import unit

_END = b"# EOF\n"


def text(*registries: CollectorRegistry, in_openmetrics: bool) -> bytes:
    """All of them in one of the formats; OpenMetrics ends with its `# EOF`."""
    disable_created_metrics()  # `_created` lines double the page and tell nothing
    if not in_openmetrics:
        return b"".join(map(exposition.generate_latest, registries))
    texts: list[bytes] = [openmetrics.generate_latest(_Units(r)) for r in registries]
    return b"".join(one.removesuffix(_END) for one in texts) + _END


class _Units(Collector):
    """What a registry holds, with the units that the names tell."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.unit = unit(metric.name)
            yield metric

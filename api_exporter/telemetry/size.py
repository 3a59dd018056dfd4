"""How much a scrape brings: what to set its limits to."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api_exporter.exposition.pages import Pages


def page_size(registry: CollectorRegistry, pages: Pages) -> None:
    """Gauges of an account's page, without our own part of it."""
    registry.register(_Size(pages))


class _Size(Collector):
    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def collect(self) -> Iterator[Metric]:
        series = GaugeMetricFamily(
            "api_exporter_series",
            "Samples on the page by collector; the exporter's own come on top.",
            labels=["collector"],
        )
        for name, count in self._pages.series().items():
            series.add_metric([name], count)
        yield series
        yield GaugeMetricFamily(
            "api_exporter_page_bytes",
            "Length of the collectors' pages, not compressed; the exporter's own"
            " metrics come on top.",
            value=sum(self._pages.lengths().values()),
        )
        yield GaugeMetricFamily(
            "api_exporter_cut_labels",
            "Labels on the collectors' pages that were cut because of their length.",
            value=self._pages.cut(),
        )

"""A bare `prometheus_client` server: `checks.benchmarks.library PORT DIRECTORY`.

It has the samples of one of the exporter's pages and renders them for each scrape.
"""

import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


class Samples(Collector):
    """The samples of a page in OpenMetrics."""

    def __init__(self, page: str) -> None:
        self._families = list(text_string_to_metric_families(page))

    def collect(self) -> Iterable[Metric]:
        return self._families


def main() -> None:
    port, directory = sys.argv[1:]
    registry = CollectorRegistry()
    registry.register(Samples((Path(directory) / "plain").read_text()))
    start_http_server(int(port), addr="127.0.0.1", registry=registry)
    threading.Event().wait()


if __name__ == "__main__":
    main()

"""Families as text and as samples, which the collectors' tests compare."""

from collections.abc import Iterable
from itertools import chain

from prometheus_client.parser import text_string_to_metric_families

from api_exporter.collectors.collector import Collector
from api_exporter.exposition.text import Family, render
from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.table import COLLECTORS

PREFIX = "netbird_api_"


def rendered(families: Iterable[Family]) -> str:
    return "".join(chain.from_iterable(map(render, families)))


def page(inventory: Inventory, collectors: Iterable[Collector] = COLLECTORS) -> str:
    """Return the page of collectors, by default of all, even of those that are off."""
    return "".join(rendered(c.make_families(inventory)) for c in collectors)


Key = tuple[str, frozenset[tuple[str, str]]]
"""A sample's name and labels."""


def parsed(text: str) -> list[tuple[Key, float]]:
    """Return the samples of a Prometheus text page, even repeated ones."""
    return [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]

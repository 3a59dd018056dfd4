"""Families as text and as samples, which the collectors' tests compare."""

import re
from collections.abc import Iterable
from itertools import chain

from prometheus_client.parser import text_string_to_metric_families

from api_exporter.collectors.table import COLLECTORS, Collector
from api_exporter.exposition.text import Family, render
from api_exporter.netbird.inventory import Inventory

PREFIX = "netbird_api_"

Samples = dict[str, list[str]]
"""Samples by family, without the prefix: labels and value, in the order of the page."""

_SAMPLE = r"(\w+)(\{.*\})? (\S+)"


def rendered(families: Iterable[Family]) -> str:
    return "".join(chain.from_iterable(map(render, families)))


def scrape(collector: str, inventory: Inventory, prefix: str = PREFIX) -> Samples:
    """Return the samples of a collector. A family without samples is missing."""
    found: Samples = {}
    (measure,) = (c.measure for c in COLLECTORS if c.name == collector)
    for line in rendered(measure(inventory)).split("\n"):
        if line and not line.startswith("#"):
            match = re.fullmatch(rf"{prefix}{_SAMPLE}", line, re.DOTALL)
            assert match, line
            name, labels, value = match.groups()
            found.setdefault(name, []).append(f"{labels or ''} {value}".lstrip())
    return found


def page(inventory: Inventory, collectors: Iterable[Collector] = COLLECTORS) -> str:
    """Return the page of collectors, by default of all, even of those that are off."""
    return "".join(rendered(c.measure(inventory)) for c in collectors)


Key = tuple[str, frozenset[tuple[str, str]]]
"""A sample's name and labels."""


def parsed(text: str) -> list[tuple[Key, float]]:
    """Return the samples of a Prometheus text page, even repeated ones."""
    return [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]

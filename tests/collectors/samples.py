"""Families as text and as samples: what the collectors' tests compare."""

import re
from collections.abc import Iterable
from itertools import chain

from prometheus_client.parser import text_string_to_metric_families

from api_exporter.collectors.table import COLLECTORS, Collector
from api_exporter.exposition.text import Family, render
from api_exporter.netbird.inventory import Inventory

PREFIX = "netbird_api_"

Told = dict[str, list[str]]
"""Samples by family, without the prefix: labels and value, in the order of the page."""

_SAMPLE = r"(\w+)(\{.*\})? (\S+)"


def rendered(families: Iterable[Family]) -> str:
    """Return the text of families."""
    return "".join(chain.from_iterable(map(render, families)))


def told(collector: str, inventory: Inventory, prefix: str = PREFIX) -> Told:
    """All that a collector says; a family without samples is not there."""
    found: Told = {}
    (measure,) = (c.measure for c in COLLECTORS if c.name == collector)
    for line in rendered(measure(inventory)).split("\n"):
        if line and not line.startswith("#"):
            match = re.fullmatch(rf"{prefix}{_SAMPLE}", line, re.DOTALL)
            assert match, line
            name, labels, value = match.groups()
            found.setdefault(name, []).append(f"{labels or ''} {value}".lstrip())
    return found


def page(inventory: Inventory, collectors: Iterable[Collector] = COLLECTORS) -> str:
    """What collectors say: all, those that are off by default included."""
    return "".join(rendered(c.measure(inventory)) for c in collectors)


Key = tuple[str, frozenset[tuple[str, str]]]
"""A sample's name and labels."""


def parsed(text: str) -> list[tuple[Key, float]]:
    """The samples of a page in the Prometheus text format, repeated ones too."""
    return [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]

"""What is published: the table of contents. One subject a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from api_exporter.collectors import peers
from api_exporter.exposition import Family
from api_exporter.inventory import Inventory

Measure = Callable[[Inventory], Iterator[Family | None]]
"""Families from records. None: not done counting, a good place to pause."""


@dataclass(frozen=True, slots=True)
class Collector:
    """A subject: the resources that it reads and the families that it makes of them."""

    name: str
    reads: tuple[str, ...]
    measure: Measure


COLLECTORS: tuple[Collector, ...] = (Collector("peers", peers.READS, peers.measure),)
"""In the order of the page."""

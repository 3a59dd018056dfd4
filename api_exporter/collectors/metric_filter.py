"""The metric filter: which families of the collectors are published."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.collectors.collector import Collector
from api_exporter.collectors.rows import Measure
from api_exporter.exposition.text import Family, Inputs, Metric
from api_exporter.netbird.inventory import Inventory


class MetricFilter(Struct, frozen=True, kw_only=True):
    """The families that METRICS_DENY and PEER_DETAIL permit.

    Attributes:
        deny: patterns of the names that are left out.
        detail: groups whose peers may have series of their own; None: all peers may.
    """

    deny: tuple[str, ...] = ()
    detail: frozenset[str] | None = None

    def permits(self, metric: Metric) -> bool:
        if metric.of_peer and self.detail == frozenset():
            return False
        return not matches(metric.name, self.deny)

    def apply(self, collector: Collector) -> Collector | None:
        """Return the collector with the permitted families; None if there are none.

        The collector also reads groups if they decide which peers have own series.
        """
        kept = tuple(filter(self.permits, collector.families))
        if not kept:
            return None
        if self == EVERYTHING:  # all accounts share it
            return collector
        reads, measure = collector.reads, collector.measure
        if self.detail and any(metric.of_peer for metric in kept):
            reads = tuple(dict.fromkeys((*reads, "groups")))
        if kept != collector.families:
            measure = partial(_measure_only, frozenset(m.name for m in kept), measure)
        return replace(collector, reads=reads, measure=measure, families=kept)


EVERYTHING = MetricFilter()


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name matches a pattern, in which `*` stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _measure_only(
    names: frozenset[str],
    measure: Measure,
    inventory: Inventory,
    before: Mapping[str, Inputs] = {},
) -> Iterator[Family]:
    """Yield families of these names without computing the samples of others."""
    for family in measure(inventory, before):
        if family.metric.name in names:
            yield family

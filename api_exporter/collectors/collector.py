"""A collector: the families of a subject, and the filter of METRICS_DENY."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.collectors.rows import FamilyContext, Row
from api_exporter.exposition.text import Family, Inputs, Metric, UnchangedFamily
from api_exporter.netbird.inventory import Inventory


class Collector(Struct, frozen=True, dict=True):
    """The families that are published and refused together.

    Attributes:
        default: true if it is enabled unless the settings disable it.
    """

    name: str
    rows: tuple[Row, ...]
    default: bool

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.reads))

    @cached_property
    def families(self) -> tuple[Metric, ...]:
        return tuple([row.metric for row in self.rows])

    def make_families(
        self, inventory: Inventory, before: Mapping[str, Inputs] = {}
    ) -> Iterator[Family]:
        """Make the families whose resources are known.

        Args:
            before: the inputs_keys of the families on the previous page.
        """
        known = FamilyContext(inventory)
        for row in self.rows:
            if any(name not in inventory.records for name in row.needs):
                continue
            inputs_key = known.inputs_key(row.reads)
            if before.get(row.metric.name) == inputs_key:
                yield UnchangedFamily(row.metric, ())
            else:
                family = row.make(row.metric, known)
                family.inputs_key = inputs_key
                yield family


class MetricFilter(Struct, frozen=True, kw_only=True):
    """The families that METRICS_DENY and PEER_DETAIL permit.

    Attributes:
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
        if self == EVERYTHING:  # all accounts share it
            return collector
        rows = [row for row in collector.rows if self.permits(row.metric)]
        if self.detail:
            rows = [
                replace(row, chosen_by=("groups",)) if row.metric.of_peer else row
                for row in rows
            ]
        return replace(collector, rows=tuple(rows)) if rows else None


EVERYTHING = MetricFilter()


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name matches a pattern, in which `*` stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)

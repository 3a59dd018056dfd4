"""The metric filter: which families of the collectors are published."""

from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.collectors.collector import Collector
from api_exporter.exposition.text import Metric


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

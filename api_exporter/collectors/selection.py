"""What is published, and with it what is asked for."""

from collections.abc import Container, Mapping

from msgspec import Struct

from api_exporter.collectors.table import COLLECTORS, Collector
from api_exporter.netbird.resources import RESOURCES, UP, Resource


class Selection(Struct, frozen=True):
    """The collectors that are on, and what they need.

    Attributes:
        collectors: in the order of the page.
        resources: those that they read, and always the peers, in the order of the
            first round.
        periods: seconds between refreshes of each of these.
    """

    collectors: tuple[Collector, ...]
    resources: tuple[Resource, ...]
    periods: Mapping[str, float]


def selection(
    names: Container[str],
    intervals: Mapping[str, float],
    omitted: Container[str] = frozenset(),
) -> Selection:
    """The collectors of these names.

    Args:
        intervals: seconds between refreshes of resources, where not the usual ones.
        omitted: resources that are not asked for, whoever reads them.
    """
    collectors = tuple(c for c in COLLECTORS if c.name in names)
    read = {UP}.union(*(collector.reads for collector in collectors))
    wanted = (r for r in RESOURCES if r.name in read)
    resources = tuple(r for r in wanted if r.name not in omitted)
    periods = {r.name: intervals.get(r.name, r.period) for r in resources}
    return Selection(collectors, resources, periods)

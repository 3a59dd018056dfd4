"""The selection: the enabled collectors, and the resources that they need."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.collectors.collector import EVERYTHING, Collector, MetricFilter
from api_exporter.netbird.bodies import CountingDecoder
from api_exporter.netbird.resources import ACCESS_LOG, ALWAYS_READ, OFF, Resource
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME, RULES

_COUNTING = CountingDecoder()


class Selection(Struct, frozen=True):
    """The enabled collectors, and the resources that they need.

    Attributes:
        collectors: in the order of the page, with the permitted families.
        resources: those that collectors read and those that are always read, in the
            order of the first requests.
        periods: seconds between refreshes of each resource.
    """

    collectors: tuple[Collector, ...]
    resources: tuple[Resource[Any], ...]
    periods: Mapping[str, float]


def selection(
    names: Container[str],
    intervals: Mapping[str, float],
    omitted: Container[str] = frozenset(),
    *,
    metric_filter: MetricFilter = EVERYTHING,
    also_request: Iterable[str] = (),
) -> Selection:
    """Return a selection of the collectors of these names that have a family left.

    Args:
        intervals: seconds between refreshes of resources, if not the usual ones; OFF
            for resources that are not requested.
        omitted: resources that are not requested even if a collector reads them.
        also_request: resources that are always requested. If no collector reads them,
            their records are not decoded.
    """
    chosen = (metric_filter.apply(c) for c in COLLECTORS if c.name in names)
    collectors = tuple(c for c in chosen if c is not None)
    off = {name for name, period in intervals.items() if period == OFF}
    off |= {name for name, needed in RULES.dormant_without.items() if needed in off}
    also_request = frozenset(also_request)
    dependencies = (RESOURCE_BY_NAME[name].depends_on for name in also_request)
    read = ALWAYS_READ.union(
        *(collector.reads for collector in collectors), *dependencies
    )
    unread = also_request - read - {ACCESS_LOG}
    resources = tuple(
        replace(r, decoder=_COUNTING) if r.name in unread else r
        for r in RESOURCE_BY_NAME.values()
        if r.name in read | also_request and r.name not in omitted and r.name not in off
    )
    periods = {r.name: intervals.get(r.name, r.period) for r in resources}
    return Selection(collectors, resources, periods)

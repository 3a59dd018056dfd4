"""The table of subjects, all lists that follow from it, and selections from them."""

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.finding import Finder
from api_exporter.collectors.collector import EVERYTHING, Collector, MetricFilter
from api_exporter.netbird.bodies import CountingDecoder
from api_exporter.netbird.inventory import ResourceRules
from api_exporter.netbird.resources import ACCESS_LOG, ALWAYS_READ, OFF, Resource
from api_exporter.subjects import (
    account,
    agent_network,
    dns,
    events,
    exporter,
    groups,
    memberships,
    networks,
    peers,
    policies,
    reverse_proxy,
    routes,
    setup_keys,
    users,
)

SUBJECTS = (
    exporter.SUBJECT,
    peers.SUBJECT,
    groups.SUBJECT,
    users.SUBJECT,
    setup_keys.SUBJECT,
    networks.SUBJECT,
    routes.SUBJECT,
    policies.SUBJECT,
    dns.SUBJECT,
    account.SUBJECT,
    reverse_proxy.SUBJECT,
    agent_network.SUBJECT,
    memberships.SUBJECT,
    events.SUBJECT,
)
"""All subjects, in the order of the page."""

COLLECTORS: tuple[Collector, ...] = tuple(
    subject.collector() for subject in SUBJECTS if subject.families
)

FINDERS: tuple[Finder, ...] = tuple(f for subject in SUBJECTS for f in subject.finders)
"""In the order of findings of one severity."""

RESOURCE_BY_NAME: dict[str, Resource[Any]] = {
    resource.name: resource
    for resource in sorted(
        (resource for subject in SUBJECTS for resource in subject.resources),
        key=lambda resource: resource.place,
    )
}
"""In the order of the first requests: permissions before all that they may withhold."""

RESOURCES = tuple(
    resource
    for resource in RESOURCE_BY_NAME.values()
    if any(resource.name in collector.reads for collector in COLLECTORS)
)
"""The resources of collectors, the peers first."""

MAX_BODY_BYTES = {
    resource.path: resource.max_body_bytes
    for resource in RESOURCES
    if resource.max_body_bytes is not None
}
"""The maximum size of some bodies in bytes, by path, below the usual maximum."""

RULES = ResourceRules(
    permissions=MappingProxyType(
        {n: r.permission for n, r in RESOURCE_BY_NAME.items() if r.permission}
    ),
    dormant_without=MappingProxyType(
        {n: r.dormant_without for n, r in RESOURCE_BY_NAME.items() if r.dormant_without}
    ),
    own=frozenset(name for name, r in RESOURCE_BY_NAME.items() if r.is_own),
    timed=frozenset(name for name, r in RESOURCE_BY_NAME.items() if r.ends),
)


_COUNTING = CountingDecoder()


class Selection(Struct, frozen=True):
    """The enabled collectors, and the resources that they need.

    Attributes:
        collectors: in the order of the page, with the permitted families.
        resources: those that collectors read and those that are always read, in the
            order of the first requests.
        intervals: seconds between refreshes of each resource.
    """

    collectors: tuple[Collector, ...]
    resources: tuple[Resource[Any], ...]
    intervals: Mapping[str, float]


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
    off = {name for name, interval in intervals.items() if interval == OFF}
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
    intervals = {r.name: intervals.get(r.name, r.interval) for r in resources}
    return Selection(collectors, resources, intervals)

"""The table of subjects, and all lists that follow from it."""

from types import MappingProxyType
from typing import Any

from api_exporter.attention.finding import Finder
from api_exporter.collectors.collector import Collector
from api_exporter.netbird.inventory import ResourceRules
from api_exporter.netbird.resources import Resource
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

"""References: ids by which records of a list name those of another; their maximum."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from msgspec import Struct

from api_exporter.exposition.per_record import Record
from api_exporter.netbird.records import Group, NetworkRouter, Policy, Route
from api_exporter.ports import UpstreamError

Lists = Mapping[str, tuple[Any, ...] | None]
"""The records of each list in REFERENCES; None for a list that is not known."""


def _own_id(record: Record) -> tuple[str, ...]:
    return (record.id,)


class Reference(Struct, frozen=True):
    """The ids by which the records of one list refer to those of another.

    Attributes:
        resource: the list whose records name ids.
        targets: the lists that have these ids. One of several lists has each id.
        ids: returns the ids that a record names.
        own_ids: returns the ids that a record of a target has.
    """

    resource: str
    targets: tuple[str, ...]
    ids: Callable[[Any], Iterable[str]]
    own_ids: Callable[[Any], Iterable[str]] = _own_id


def _listed(field: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda record: getattr(record, field) or ()


def _members(group: Group) -> list[str]:
    return [member.id for member in group.peers or () if member.id]


def _peer(router: NetworkRouter | Route) -> tuple[str, ...]:
    return (router.peer,) if router.peer else ()


def _sides(policy: Policy) -> Iterator[str]:
    for rule in policy.rules or ():
        for group in chain(rule.sources or (), rule.destinations or ()):
            yield group.id


REFERENCES = (
    Reference("groups", ("peers",), _members),
    Reference("network_routers", ("peers",), _peer),
    Reference("network_routers", ("groups",), _listed("peer_groups")),
    Reference("networks", ("network_routers",), _listed("routers")),
    Reference("networks", ("network_resources",), _listed("resources")),
    # A resource does not name its network: the network lists the resource.
    Reference("network_resources", ("networks",), _own_id, _listed("resources")),
    Reference("routes", ("peers",), _peer),
    Reference("routes", ("groups",), _listed("peer_groups")),
    Reference("policies", ("groups",), _sides),
    Reference("policies", ("posture_checks",), _listed("source_posture_checks")),
    Reference("agent_policies", ("groups",), _listed("source_groups")),
    Reference(
        "agent_policies", ("agent_providers",), _listed("destination_provider_ids")
    ),
    Reference("agent_policies", ("agent_guardrails",), _listed("guardrail_ids")),
    Reference("agent_budget_rules", ("groups",), _listed("target_groups")),
    Reference("agent_budget_rules", ("users", "peers"), _listed("target_users")),
)

JOINED_LISTS = tuple(
    dict.fromkeys(n for r in REFERENCES for n in (*r.targets, r.resource))
)
"""All lists that name ids or have them. Most lists stand behind those that they name.
"""

REFERENCES_FROM = {n: [r for r in REFERENCES if r.resource == n] for n in JOINED_LISTS}
REFERENCES_TO = {n: [r for r in REFERENCES if n in r.targets] for n in JOINED_LISTS}
"""By list: the references of its own records, and those to them."""


MAX_NAMED_IDS = 1_000_000
"""The maximum number of ids that the records of one list may name, without members of
groups. The largest known network has a hundredth of it. Joins look up each id.
"""


def check_named_ids(name: str, records: Sequence[Any]) -> None:
    """Raise UpstreamError if the records of a list name more ids than joins take."""
    total = sum(
        sum(1 for _ in reference.ids(record))
        for reference in (() if name == "groups" else REFERENCES_FROM.get(name, ()))
        for record in records
    )
    if total > MAX_NAMED_IDS:
        message = f"the records name {total} objects; the maximum is {MAX_NAMED_IDS}"
        raise UpstreamError("too_large", message)


@cache
def has_references(resources: tuple[str, ...]) -> bool:
    """Return whether one of these lists names ids of another one of them."""
    return any(
        reference.resource in resources
        and not set(resources).isdisjoint(reference.targets)
        for reference in REFERENCES
    )

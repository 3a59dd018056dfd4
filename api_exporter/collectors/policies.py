"""Policies and posture checks: who may reach whom, and which clients are too old."""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

from api_exporter.collectors import joins
from api_exporter.collectors.once import Once
from api_exporter.exposition.tally import AT_ONCE, finish, tally
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    Sample,
    boolean,
    counted,
    halves,
    labels,
    single,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Group,
    GroupId,
    Peer,
    Policy,
    PostureCheck,
    TypedId,
)

READS = ("policies", "groups", "posture_checks", "peers")

POLICIES = Metric(
    name="netbird_api_policies",
    help="Number of policies by whether they are enabled.",
    source="policies[].enabled",
)
RULES = Metric(
    name="netbird_api_policy_rules",
    help="Number of rules by action, protocol and whether they are enabled.",
    source="policies[].rules[].{action,protocol,enabled}",
)
INFO = Metric(
    name="netbird_api_policy_info",
    help="Properties of a policy, to be joined by policy_id. Always 1.",
    source="policies[]",
)
ENABLED = Metric(
    name="netbird_api_policy_enabled",
    help="Whether the policy is enabled.",
    source="policies[].enabled",
)
ENABLED_RULES = Metric(
    name="netbird_api_policy_enabled_rules",
    help="Number of the policy's rules that are enabled, whether or not it is itself.",
    source="policies[].rules[].enabled",
    alert="0 for an enabled policy: it does nothing",
)
EMPTY_SIDES = Metric(
    name="netbird_api_policy_empty_sides",
    help="Number of sides of the enabled policy's enabled rules that reach nothing.",
    source="policies[].rules[].{sources,destinations,sourceResource,"
    "destinationResource} among groups[].{peers_count,resources_count}",
    alert="above 0: the policy does not do what it seems to do",
)
POSTURE_CHECKS = Metric(
    name="netbird_api_posture_checks",
    help="Number of posture checks.",
    source="posture-checks[]",
)
POSTURE_CHECK_INFO = Metric(
    name="netbird_api_posture_check_info",
    help="Properties of a posture check, to be joined by posture_check_id. Always 1.",
    source="posture-checks[]",
)
POSTURE_CHECK_POLICIES = Metric(
    name="netbird_api_posture_check_policies",
    help="Number of enabled policies that use the posture check.",
    source="posture-checks[].id among policies[].source_posture_checks[],"
    " where policies[].enabled",
    alert="0: the check shuts nobody out",
)
BELOW_MIN_VERSION = Metric(
    name="netbird_api_posture_check_peers_below_min_version",
    help="Number of peers that the posture check shuts out of enabled policies because"
    " their released version is below its minimum.",
    source="posture-checks[].checks.nb_version_check.min_version, peers[].version,"
    " groups[].peers[].id, policies[].{enabled,source_posture_checks},"
    " policies[].rules[].{enabled,sources}",
    alert="above 0: these peers are shut out",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of policies and posture checks, as far as their sides are known."""
    if inventory.policies is not None:
        yield from _policies(inventory.policies, inventory)
    if inventory.posture_checks is not None:
        yield from _posture_checks(inventory.posture_checks, inventory)


def _policies(
    policies: tuple[Policy, ...], inventory: Inventory
) -> Iterator[Family | None]:
    yield halves(POLICIES, "enabled", (policy.enabled for policy in policies))
    yield counted(
        RULES,
        (
            labels(
                action=rule.action,
                protocol=rule.protocol,
                enabled=boolean(rule.enabled),
            )
            for policy in policies
            for rule in joins.distinct(policy.rules)
        ),
    )
    keyed = Once((labels(policy_id=p.id, policy=p.name), p) for p in policies)
    yield Family(INFO, ((key, 1) for key, _ in keyed))
    yield Family(ENABLED, ((key, int(policy.enabled)) for key, policy in keyed))
    yield Family(
        ENABLED_RULES,
        (
            (key, sum(r.enabled for r in joins.distinct(policy.rules)))
            for key, policy in keyed
        ),
    )
    if inventory.groups is not None:
        yield Family(EMPTY_SIDES, _each_empty(keyed, inventory.groups))


def _each_empty(
    keyed: Iterable[tuple[Labels, Policy]], groups: Iterable[Group]
) -> Iterator[Sample]:
    known = sizes(groups)
    for key, policy in keyed:
        yield key, empty_sides(policy, known)


def sizes(groups: Iterable[Group]) -> dict[str, int]:
    """How many peers and network resources each group has, by its id."""
    return {group.id: group.peers_count + group.resources_count for group in groups}


def empty_sides(policy: Policy, sizes: Mapping[str, int]) -> int:
    """How many sides of its enabled rules reach nothing; none where it is not enabled.

    Args:
        sizes: of the groups, by their ids.
    """
    if not policy.enabled:
        return 0
    return sum(
        _empty(groups, resource, sizes)
        for rule in joins.distinct(policy.rules)
        if rule.enabled
        for groups, resource in (
            (rule.sources, rule.source_resource),
            (rule.destinations, rule.destination_resource),
        )
    )


def _empty(
    groups: tuple[GroupId, ...] | None,
    resource: TypedId | None,
    sizes: Mapping[str, int],
) -> bool:
    if resource is not None and resource.id:
        return False
    return all(sizes.get(group.id, 0) <= 0 for group in groups or ())


def _posture_checks(
    checks: tuple[PostureCheck, ...], inventory: Inventory
) -> Iterator[Family]:
    yield single(POSTURE_CHECKS, len(checks))
    keyed = Once(
        (labels(posture_check_id=c.id, posture_check=c.name), c) for c in checks
    )
    yield Family(POSTURE_CHECK_INFO, ((key, 1) for key, _ in keyed))
    if inventory.policies is None:
        return
    yield Family(POSTURE_CHECK_POLICIES, _used(keyed, inventory.policies))
    if inventory.groups is None or inventory.peers is None:
        return
    counts, steps = outdated(
        checks, inventory.policies, inventory.groups, inventory.peers
    )
    yield Family(BELOW_MIN_VERSION, _below(keyed, counts, steps), steps=steps)


def _used(
    keyed: Iterable[tuple[Labels, PostureCheck]], policies: Iterable[Policy]
) -> Iterator[Sample]:
    by_check = policies_by_check(policies)
    for key, check in keyed:
        yield key, len(by_check.get(check.id, ()))


def _below(
    keyed: Iterable[tuple[Labels, PostureCheck]],
    counts: Mapping[str, int],
    steps: Iterator[None],
) -> Iterator[Sample]:
    finish(steps)
    for key, check in keyed:
        if check.id in counts:
            yield key, counts[check.id]


def policies_by_check(policies: Iterable[Policy]) -> dict[str, list[Policy]]:
    """The enabled policies that use a posture check, by the check's id."""
    found: dict[str, list[Policy]] = {}
    for policy in policies:
        if policy.enabled:
            for check in dict.fromkeys(policy.source_posture_checks or ()):
                found.setdefault(check, []).append(policy)
    return found


Release = tuple[int, int, int]


def outdated(
    checks: Iterable[PostureCheck],
    policies: Iterable[Policy],
    groups: Iterable[Group],
    peers: tuple[Peer, ...],
) -> tuple[dict[str, int], Iterator[None]]:
    """How many peers each check shuts out because of their versions, by the check's
    id, when the steps have been gone through.

    They are in source groups of enabled rules of the policies that use the check.
    """
    counts: dict[str, int] = {}

    def count() -> Iterator[None]:
        demands = yield from _demands(checks, policies_by_check(policies))
        for demanding in demands.values():
            counts.update((id_, 0) for id_, _ in demanding)
        if not any(demands):
            return
        versions: dict[str, str] = {}
        for start in range(0, len(peers), AT_ONCE):
            some = peers[start : start + AT_ONCE]
            versions.update({peer.id: peer.version for peer in some})
            yield
        known = {group.id: group.peers or () for group in groups}
        for sources, demanding in demands.items():
            found: set[str] = set()
            for members in map(known.__getitem__, sources & known.keys()):
                for start in range(0, len(members), AT_ONCE):
                    found.update([m.id for m in members[start : start + AT_ONCE]])
                    yield
            running, steps = tally(versions[id_] for id_ in found if id_ in versions)
            yield from steps
            for id_, minimum in demanding:
                counts[id_] = sum(
                    number
                    for version, number in running.items()
                    if (own := release(version)) is not None and own < minimum
                )

    return counts, count()


def _demands(
    checks: Iterable[PostureCheck], by_check: Mapping[str, Sequence[Policy]]
) -> Generator[None, None, dict[frozenset[str], list[tuple[str, Release]]]]:
    """Checks that demand a version, by the groups whose members they concern."""
    sources: dict[tuple[int, ...], frozenset[str]] = {}
    demands: dict[frozenset[str], list[tuple[str, Release]]] = {}
    for check in checks:
        demanded = check.checks.nb_version_check
        minimum = release(demanded.min_version) if demanded is not None else None
        if minimum is not None:
            policies = by_check.get(check.id, ())
            key = tuple(map(id, policies))
            if key not in sources:  # many checks may be used by the same policies
                found = set[str]()
                for policy in policies:
                    found |= source_groups(policy)
                    yield
                sources[key] = frozenset(found)
            demands.setdefault(sources[key], []).append((check.id, minimum))
        yield
    return demands


def source_groups(policy: Policy) -> frozenset[str]:
    """The ids of the groups that its enabled rules let in."""
    return frozenset(
        group.id
        for rule in joins.distinct(policy.rules)
        if rule.enabled
        for group in rule.sources or ()
    )


def release(version: str) -> Release | None:
    """A release's three numbers; None for development builds and whatever else."""
    match = re.fullmatch(r"v?(\d{1,99})\.(\d{1,99})\.(\d{1,99})", version, re.ASCII)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None

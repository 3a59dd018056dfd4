"""Policies and posture checks: who may reach whom, and which clients are too old."""

from collections.abc import Iterable, Iterator, Mapping

from api_exporter.collectors.once import Once
from api_exporter.exposition.tally import finish
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
from api_exporter.netbird.facts.members import distinct
from api_exporter.netbird.facts.policies import (
    empty_sides,
    outdated,
    policies_by_check,
    sizes,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Policy, PostureCheck

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
            for rule in distinct(policy.rules)
        ),
    )
    keyed = Once((labels(policy_id=p.id, policy=p.name), p) for p in policies)
    yield Family(INFO, ((key, 1) for key, _ in keyed))
    yield Family(ENABLED, ((key, int(policy.enabled)) for key, policy in keyed))
    yield Family(
        ENABLED_RULES,
        (
            (key, sum(r.enabled for r in distinct(policy.rules)))
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

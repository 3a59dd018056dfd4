"""Policies and posture checks, and the peers that posture checks block."""

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import labels
from api_exporter.netbird.facts.members import distinct
from api_exporter.netbird.facts.policies import (
    empty_sides,
    group_sizes,
    outdated_peer_counts,
    policies_by_check,
)
from api_exporter.netbird.records import Policy, PostureCheck

POLICIES = ObjectKind[Policy](
    "policies",
    "policies[]",
    lambda policy: labels(policy_id=policy.id, policy=policy.name),
)
CHECKS = ObjectKind[PostureCheck](
    "posture_checks",
    "posture-checks[]",
    lambda check: labels(posture_check_id=check.id, posture_check=check.name),
)


ROWS = (
    POLICIES.count_true_and_false(
        "netbird_api_policies",
        "Number of policies by whether they are enabled",
        "enabled",
    ),
    POLICIES.count(
        "netbird_api_policy_rules",
        "Number of policy rules by action, protocol and whether they are enabled",
        {"action": "action", "protocol": "protocol", "enabled": "enabled"},
        elements=lambda policy: distinct(policy.rules),
        source="policies[].rules[].{action,protocol,enabled}",
    ),
    POLICIES.each(
        "netbird_api_policy_info",
        "Properties of a policy, to join on policy_id (always 1)",
        "policies[]",
    ),
    POLICIES.field(
        "netbird_api_policy_enabled",
        "Whether the policy is enabled (1 = yes, 0 = no)",
        "enabled",
    ),
    POLICIES.each(
        "netbird_api_policy_enabled_rules",
        "Number of the policy's enabled rules, even while the policy is disabled",
        "policies[].rules[].enabled",
        lambda policy: sum(rule.enabled for rule in distinct(policy.rules)),
        alert="0 for an enabled policy: the policy has no effect",
    ),
    POLICIES.joined(
        "netbird_api_policy_empty_sides",
        "Number of empty sides (sources or destinations) of the enabled policy's"
        " enabled rules",
        "policies[].rules[].{sources,destinations,sourceResource,"
        "destinationResource} among groups[].{peers_count,resources_count}",
        group_sizes,
        lambda known, policy: empty_sides(policy, known),
        needs=("groups",),
        alert="above 0: the policy has no effect on this side",
    ),
    CHECKS.total("netbird_api_posture_checks", "Number of posture checks"),
    CHECKS.each(
        "netbird_api_posture_check_info",
        "Properties of a posture check, to join on posture_check_id (always 1)",
        "posture-checks[]",
    ),
    CHECKS.joined(
        "netbird_api_posture_check_policies",
        "Number of enabled policies that use the posture check",
        "posture-checks[].id among policies[].source_posture_checks[],"
        " where policies[].enabled",
        policies_by_check,
        lambda used, check: len(used.get(check.id, ())),
        needs=("policies",),
        alert="0: no policy uses the check",
    ),
    CHECKS.joined(
        "netbird_api_posture_check_peers_below_min_version",
        "Number of peers that the posture check blocks because their client version is"
        " below its minimum",
        "posture-checks[].checks.nb_version_check.min_version, peers[].version,"
        " groups[].peers[].id, policies[].{enabled,source_posture_checks},"
        " policies[].rules[].{enabled,sources}",
        outdated_peer_counts,
        lambda counts, check: counts.get(check.id),
        needs=("policies", "groups", "peers"),
        alert="above 0: these peers have no access",
    ),
)

"""Policies; rules count whether or not their policy is enabled."""

from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, boolean, counted, labels
from api_exporter.netbird.records import Policy, Rule

POLICIES = Metric(
    name="netbird_policies",
    help="Number of policies by whether they are enabled.",
    source="policies[].enabled",
)
RULES = Metric(
    name="netbird_policy_rules_count",
    help="Number of the policy's rules.",
    source="policies[].rules",
)
RULES_ENABLED = Metric(
    name="netbird_policy_rules_enabled",
    help="Number of rules by whether they are enabled.",
    source="policies[].rules[].enabled",
)
RULES_BY_PROTOCOL = Metric(
    name="netbird_policy_rules_by_protocol",
    help="Number of rules by protocol.",
    source="policies[].rules[].protocol",
)
RULES_BY_ACTION = Metric(
    name="netbird_policy_rules_by_action",
    help="Number of rules by action.",
    source="policies[].rules[].action",
)
INFO = Metric(
    name="netbird_policy_info",
    help="Properties of a policy. Always 1.",
    source="policies[]",
)


def families(policies: tuple[Policy, ...]) -> Iterator[Family]:
    def rules() -> Iterator[Rule]:
        return (rule for policy in policies for rule in policy.rules or ())

    yield counted(POLICIES, (labels(enabled=boolean(p.enabled)) for p in policies))
    yield Family(
        RULES,
        (
            (labels(policy_id=p.id, policy_name=p.name), len(p.rules or ()))
            for p in policies
        ),
    )
    yield counted(RULES_ENABLED, (labels(enabled=boolean(r.enabled)) for r in rules()))
    yield counted(RULES_BY_PROTOCOL, (labels(protocol=r.protocol) for r in rules()))
    yield counted(RULES_BY_ACTION, (labels(action=r.action) for r in rules()))
    yield Family(
        INFO,
        (
            (
                labels(policy_id=p.id, policy_name=p.name, description=p.description),
                1,
            )
            for p in policies
        ),
    )

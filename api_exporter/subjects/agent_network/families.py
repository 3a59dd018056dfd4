"""The families of the Agent Network."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import fields

from api_exporter.collectors.rows import ObjectKind, Row, id_and_name, length
from api_exporter.exposition.text import Labels, Sample, labels
from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.agent_network.consumption import (
    TOKEN_KINDS,
    Limit,
    current_rows,
    denied_count,
    enabled_providers,
    limits,
    listed_ids,
    policy_misses,
    rule_misses,
    usage_by_period,
    used_ratios,
)
from api_exporter.subjects.agent_network.resources import (
    AGENT_BUDGET_RULES,
    AGENT_CONSUMPTION,
    AGENT_DENIALS,
    AGENT_POLICIES,
    AGENT_PROVIDERS,
    AGENT_SETTINGS,
    AGENT_USAGE,
    DAY_SECONDS,
    AgentBudgetRule,
    AgentPolicy,
    AgentProvider,
    AgentSettings,
    Consumption,
    ConsumptionRow,
    UsageBucket,
)

PROVIDER = ObjectKind[AgentProvider](AGENT_PROVIDERS, id_and_name("agent_provider"))
AGENT_POLICY = ObjectKind[AgentPolicy](AGENT_POLICIES, id_and_name("agent_policy"))
RULE = ObjectKind[AgentBudgetRule](AGENT_BUDGET_RULES, id_and_name("agent_budget_rule"))
AGENT_SETTING = ObjectKind[AgentSettings](AGENT_SETTINGS)
CONSUMPTION = ObjectKind[Consumption](AGENT_CONSUMPTION)


def _limit_labels(limit: Limit, **more: str) -> Labels:
    return labels(
        limit_of=limit.kind,
        limit_id=limit.id,
        limit=limit.name,
        per=limit.per,
        window_seconds=str(limit.window_seconds),
        **more,
    )


LIMIT = ObjectKind[Limit](
    AGENT_POLICIES, _limit_labels, find=limits, needs=("agent_budget_rules",)
)


class Spent(Struct, frozen=True):
    """The consumption of a group or consumer in a current window."""

    owner: Mapping[str, str]
    row: ConsumptionRow

    def labels(self, **more: str) -> Labels:
        return labels(**self.owner, window_seconds=str(self.row.window_seconds), **more)


def _group_consumption(inventory: Inventory) -> Iterable[Spent]:
    names = {group.id: group.name for group in inventory.groups or ()}
    return [
        Spent({"group_id": row.dimension_id, "group": names[row.dimension_id]}, row)
        for row in current_rows(inventory)
        if row.dimension_kind == "group" and row.dimension_id in names
    ]


def _listed_consumption(inventory: Inventory) -> Iterable[Spent]:
    if "usage" not in inventory.personal:
        return []
    listed = listed_ids(inventory)
    return [
        Spent({"consumer_id": row.dimension_id}, row)
        for row in current_rows(inventory)
        if row.dimension_kind == "user"
        and (row.dimension_id in listed("users") or row.dimension_id in listed("peers"))
    ]


def _tokens(every: Iterable[Spent]) -> Iterator[Sample]:
    for spent in every:
        yield spent.labels(direction="input"), spent.row.tokens_input
        yield spent.labels(direction="output"), spent.row.tokens_output


AGENT_GROUP = ObjectKind[Spent](
    AGENT_CONSUMPTION, Spent.labels, find=_group_consumption, needs=("groups",)
)
CONSUMER = ObjectKind[Spent](
    AGENT_CONSUMPTION, Spent.labels, find=_listed_consumption, needs=("users", "peers")
)

Period = tuple[str, UsageBucket]


def _by_kind(field: str, periods: Iterable[Period]) -> Iterator[Sample]:
    for period, used in periods:
        for kind in TOKEN_KINDS:
            yield labels(period=period, kind=kind), getattr(used, f"{kind}_{field}")


USAGE = ObjectKind[Period](
    AGENT_USAGE,
    find=lambda known: list(usage_by_period(AGENT_USAGE.of(known) or (), known.now)),
)
DENIALS = ObjectKind[int](AGENT_DENIALS, find=denied_count, needs=("agent_settings",))

BOOL_SETTINGS = [field.name for field in fields(AgentSettings) if field.type is bool]


def _enabled(every: Iterable[AgentSettings]) -> Iterator[Sample]:
    for settings in every:
        for name in BOOL_SETTINGS:
            yield labels(setting=name), int(getattr(settings, name))


FAMILIES: tuple[Row, ...] = (
    PROVIDER.count_enabled("netbird_api_agent_providers", "Agent Network providers"),
    PROVIDER.info(
        "netbird_api_agent_provider_info",
        "Properties of an Agent Network provider, to join on agent_provider_id (always"
        " 1)",
        {"catalog_id": "provider_id"},
    ),
    PROVIDER.enabled("netbird_api_agent_provider_enabled", "Agent Network provider"),
    PROVIDER.each(
        "netbird_api_agent_provider_tls_verified",
        "Whether the gateway verifies the provider's certificate (1 = yes, 0 = no)",
        "agent-network/providers[].skip_tls_verification",
        lambda provider: int(not provider.skip_tls_verification),
        alert="0: an attacker on the network can read prompts and the key",
    ),
    PROVIDER.field(
        "netbird_api_agent_provider_models",
        "Number of models that the provider may offer (0 = all models of its catalog)",
        "models",
        length,
    ),
    AGENT_POLICY.count_enabled("netbird_api_agent_policies", "Agent Network policies"),
    RULE.count_enabled("netbird_api_agent_budget_rules", "Agent Network budget rules"),
    AGENT_POLICY.enabled("netbird_api_agent_policy_enabled", "Agent Network policy"),
    AGENT_POLICY.joined(
        "netbird_api_agent_policy_providers_enabled",
        "Number of enabled providers of the Agent Network policy",
        "agent-network/policies[].destination_provider_ids among"
        " agent-network/providers[].enabled",
        enabled_providers,
        lambda ids, policy: len(ids & set(policy.destination_provider_ids or ())),
        needs=("agent_providers",),
        alert="0 for an enabled policy: no enabled provider",
    ),
    AGENT_POLICY.joined(
        "netbird_api_agent_policy_missing_references",
        "Number of groups, providers and guardrails in the Agent Network policy that"
        " do not exist",
        "agent-network/policies[].{source_groups,destination_provider_ids,"
        "guardrail_ids} among groups[], agent-network/{providers,guardrails}[]",
        listed_ids,
        lambda ids, policy: len(policy_misses(ids, policy)),
        needs=("agent_providers", "agent_guardrails", "groups"),
        alert="above 0: a policy without its only allow-list is unrestricted",
    ),
    RULE.enabled("netbird_api_agent_budget_rule_enabled", "Agent Network budget rule"),
    RULE.joined(
        "netbird_api_agent_budget_rule_missing_references",
        "Number of groups and users in the Agent Network budget rule that do not exist",
        "agent-network/budget-rules[].{target_groups,target_users} among groups[],"
        " users[], peers[]",
        listed_ids,
        lambda ids, rule: len(rule_misses(ids, rule)),
        needs=("groups", "users", "peers"),
        alert="above 0: the rule applies to fewer groups or users than it names",
    ),
    LIMIT.each(
        "netbird_api_agent_limit_tokens",
        "Limit of an enabled policy or budget rule: tokens in a window, for each group"
        " or user",
        "agent-network/{policies,budget-rules}[].limits.token_limit",
        lambda limit: limit.cap if limit.unit == "tokens" else None,
    ),
    LIMIT.each(
        "netbird_api_agent_limit_usd",
        "Limit of an enabled policy or budget rule: US dollars in a window, for each"
        " group or user",
        "agent-network/{policies,budget-rules}[].limits.budget_limit",
        lambda limit: limit.cap if limit.unit == "usd" else None,
    ),
    LIMIT.joined(
        "netbird_api_agent_limit_used_ratio",
        "Largest share of the limit that a group or user has used in the current"
        " window (1 = all; absent without a known group or user)",
        "agent-network/{policies,budget-rules}[].limits, agent-network/consumption[],"
        " groups[], users[], peers[]",
        used_ratios,
        lambda ratios, limit: ratios.get(limit),
        labels=lambda _, limit: _limit_labels(limit, unit=limit.unit),
        needs=("agent_consumption", "groups", "users", "peers"),
        alert="0.9: from 1 on NetBird denies requests",
    ),
    AGENT_GROUP.samples(
        "netbird_api_agent_group_tokens",
        "Number of tokens that the group has used in its current window",
        "agent-network/consumption[].{tokens_input,tokens_output}",
        _tokens,
    ),
    AGENT_GROUP.each(
        "netbird_api_agent_group_cost_usd",
        "Cost in US dollars that the group has caused in its current window",
        "agent-network/consumption[].cost_usd",
        lambda spent: spent.row.cost_usd,
    ),
    CONSUMER.samples(
        "netbird_api_agent_consumer_tokens",
        "Number of tokens that a user, or a peer without a user, has used in the"
        " current window",
        "agent-network/consumption[].{tokens_input,tokens_output}, with"
        " EXPOSE_PERSONAL_DATA=usage",
        _tokens,
    ),
    CONSUMER.each(
        "netbird_api_agent_consumer_cost_usd",
        "Cost in US dollars that a user, or a peer without a user, has caused in the"
        " current window",
        "agent-network/consumption[].cost_usd, with EXPOSE_PERSONAL_DATA=usage",
        lambda spent: spent.row.cost_usd,
    ),
    USAGE.samples(
        "netbird_api_agent_usage_tokens",
        "Number of tokens used today and this month (UTC), by kinds that overlap",
        "agent-network/usage/overview[].*_tokens",
        partial(_by_kind, "tokens"),
    ),
    USAGE.samples(
        "netbird_api_agent_usage_cost_usd",
        "Cost in US dollars today and this month (UTC), by kinds that add up",
        "agent-network/usage/overview[].*_cost_usd",
        partial(_by_kind, "cost_usd"),
        alert="above the budget of a month",
    ),
    DENIALS.each(
        "netbird_api_agent_denied_requests",
        "Number of requests denied since 00:00 UTC (absent while the access log is"
        " disabled)",
        "agent-network/access-logs.total_records, of those denied",
        lambda number: number,
        alert="many more than usual",
    ),
    CONSUMPTION.field(
        "netbird_api_agent_consumption_rows",
        "Number of rows in the list of consumption, from which NetBird deletes no row",
        "rows",
        alert="100000: set REFRESH_INTERVALS=agent_consumption=off",
    ),
    AGENT_SETTING.samples(
        "netbird_api_agent_setting_enabled",
        "Whether a setting of the Agent Network is enabled (1 = yes, 0 = no)",
        "agent-network/settings",
        _enabled,
    ),
    AGENT_SETTING.field(
        "netbird_api_agent_access_log_retention_seconds",
        "Time in seconds for which requests stay in the access log (absent if"
        " unlimited)",
        "access_log_retention_days",
        lambda days: days * DAY_SECONDS if days > 0 else None,
    ),
)

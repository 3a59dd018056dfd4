"""The rows of the Agent Network: its paths in the API."""

from api_exporter.netbird.bodies import DocumentDecoder, ListDecoder
from api_exporter.netbird.resources import MINUTE, Resource, length_of
from api_exporter.subjects.agent_network.bodies import (
    AgentBudgetRule,
    AgentGuardrail,
    AgentPolicy,
    AgentProvider,
    AgentSettings,
    Consumption,
    ConsumptionDecoder,
    DenialsDecoder,
    Usage,
    UsageDecoder,
    denials_query,
    next_midnight,
    usage_query,
    window_end,
)

AGENT_PROVIDERS = Resource(
    "agent_providers",
    "api/agent-network/providers",
    ListDecoder(AgentProvider),
    15 * MINUTE,
    idle_periods=2.0,
    permission="agent_network.providers",
    place=7,
)
"""While it has no record, the other resources are dormant."""

AGENT_POLICIES = Resource(
    "agent_policies",
    "api/agent-network/policies",
    ListDecoder(AgentPolicy),
    15 * MINUTE,
    permission="agent_network.policies",
    dormant_without=AGENT_PROVIDERS.name,
    named_ids=length_of("source_groups", "destination_provider_ids", "guardrail_ids"),
    place=7,
)
AGENT_BUDGET_RULES = Resource(
    "agent_budget_rules",
    "api/agent-network/budget-rules",
    ListDecoder(AgentBudgetRule),
    15 * MINUTE,
    permission="agent_network.budgets",
    dormant_without=AGENT_PROVIDERS.name,
    named_ids=length_of("target_groups", "target_users"),
    place=7,
)
AGENT_GUARDRAILS = Resource(
    "agent_guardrails",
    "api/agent-network/guardrails",
    ListDecoder(AgentGuardrail),
    15 * MINUTE,
    permission="agent_network.guardrails",
    dormant_without=AGENT_PROVIDERS.name,
    place=7,
)
AGENT_SETTINGS = Resource(
    "agent_settings",
    "api/agent-network/settings",
    DocumentDecoder(AgentSettings, nullable=True),
    15 * MINUTE,
    permission="agent_network.settings",
    dormant_without=AGENT_PROVIDERS.name,
    place=7,
)
# NetBird reads all of it from its database, and never deletes a row.
AGENT_CONSUMPTION: Resource[Consumption] = Resource(
    "agent_consumption",
    "api/agent-network/consumption",
    ConsumptionDecoder(),
    ends=lambda known, now: window_end(AGENT_CONSUMPTION.of(known) or (), now),
    cost=100.0,
    permission="agent_network.usage",
    dormant_without=AGENT_PROVIDERS.name,
    max_body_bytes=32 * 1024 * 1024,
    place=7,
)
AGENT_USAGE: Resource[Usage] = Resource(
    "agent_usage",
    "api/agent-network/usage/overview",
    UsageDecoder(),
    query=lambda known, now: usage_query(AGENT_USAGE.of(known) or (), now),
    ends=lambda _, now: next_midnight(now),
    permission="agent_network.usage",
    dormant_without=AGENT_PROVIDERS.name,
    place=7,
)
AGENT_DENIALS = Resource(
    "agent_denials",
    "api/agent-network/access-logs",
    DenialsDecoder(),
    query=lambda _, now: denials_query(now),
    ends=lambda _, now: next_midnight(now),
    permission="agent_network.logs",
    dormant_without=AGENT_PROVIDERS.name,
    place=7,
)
RESOURCES = (
    AGENT_PROVIDERS,
    AGENT_POLICIES,
    AGENT_BUDGET_RULES,
    AGENT_GUARDRAILS,
    AGENT_SETTINGS,
    AGENT_CONSUMPTION,
    AGENT_USAGE,
    AGENT_DENIALS,
)

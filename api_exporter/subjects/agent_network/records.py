"""Typed records of NetBird's Agent Network, a gateway to language models.

They have only the fields that are exported: no key, no address, no prompt.
"""

from typing import Annotated

from msgspec import Meta, Struct

from api_exporter.netbird.records import Count, GroupId, Instant, ShownText

Amount = Annotated[float, Meta(ge=-(2**53), le=2**53)]
"""An amount in US dollars."""


class AgentProvider(Struct, frozen=True, gc=False, kw_only=True):
    """A provider of language models (`/api/agent-network/providers`)."""

    id: str
    name: ShownText = ""
    provider_id: ShownText = ""
    enabled: bool = False
    skip_tls_verification: bool = False
    models: tuple[GroupId, ...] | None = None  # only their number is used


class TokenLimit(Struct, frozen=True, gc=False, kw_only=True):
    """A limit in tokens for a window. A cap of 0 means no limit."""

    enabled: bool = False
    group_cap: Count = 0
    user_cap: Count = 0
    window_seconds: Count = 0


class BudgetLimit(Struct, frozen=True, gc=False, kw_only=True):
    """A limit in US dollars for a window. A cap of 0 means no limit."""

    enabled: bool = False
    group_cap_usd: Amount = 0.0
    user_cap_usd: Amount = 0.0
    window_seconds: Count = 0


class Limits(Struct, frozen=True, gc=False, kw_only=True):
    """A token limit and a budget limit. A disabled limit may still have caps."""

    token_limit: TokenLimit = TokenLimit()
    budget_limit: BudgetLimit = BudgetLimit()


class AgentPolicy(Struct, frozen=True, gc=False, kw_only=True):
    """The access of groups to providers (`/api/agent-network/policies`)."""

    id: str
    name: ShownText = ""
    enabled: bool = False
    source_groups: tuple[str, ...] | None = None
    destination_provider_ids: tuple[str, ...] | None = None
    guardrail_ids: tuple[str, ...] | None = None
    limits: Limits = Limits()


class AgentBudgetRule(Struct, frozen=True, gc=False, kw_only=True):
    """A limit in addition to those of policies (`/api/agent-network/budget-rules`)."""

    id: str
    name: ShownText = ""
    enabled: bool = False
    target_groups: tuple[str, ...] | None = None
    target_users: tuple[str, ...] | None = None
    limits: Limits = Limits()


class AgentGuardrail(Struct, frozen=True, gc=False, kw_only=True):
    """A guardrail that policies name (`/api/agent-network/guardrails`)."""

    id: str


class AgentSettings(Struct, frozen=True, gc=False, kw_only=True):
    """Settings for the data of requests (`/api/agent-network/settings`)."""

    enable_log_collection: bool = False
    enable_prompt_collection: bool = False
    redact_pii: bool = False
    dedicated: bool = False
    access_log_retention_days: Count = 0


class ConsumptionRow(Struct, frozen=True, gc=False, kw_only=True):
    """The consumption of a group or consumer in one window. The row names no limit."""

    dimension_kind: str = ""
    dimension_id: str = ""
    window_seconds: Count = 0
    window_start_utc: Instant = None
    tokens_input: Count = 0
    tokens_output: Count = 0
    cost_usd: Amount = 0.0


class UsageBucket(Struct, frozen=True, gc=False, kw_only=True):
    """The usage of one day."""

    period_start: str = ""
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_creation_tokens: Count = 0
    input_cost_usd: Amount = 0.0
    output_cost_usd: Amount = 0.0
    cached_input_cost_usd: Amount = 0.0
    cache_creation_cost_usd: Amount = 0.0


class RequestCount(Struct, frozen=True, gc=False, kw_only=True):
    """A page of the access log. Its one row is not read."""

    total_records: Count

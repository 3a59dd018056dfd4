"""What the upstream says of its Agent Network, a gateway to language models.

Only fields that are exported: no key, no address, no prompt.
"""

from typing import Annotated

from msgspec import Meta, Struct

from api_exporter.netbird.records import Count, GroupId, Instant

Amount = Annotated[float, Meta(ge=-(2**53), le=2**53)]
"""US dollars."""


class AgentProvider(Struct, frozen=True, gc=False, kw_only=True):
    """Where models are (`/api/agent-network/providers`)."""

    id: str
    name: str = ""
    provider_id: str = ""
    enabled: bool = False
    skip_tls_verification: bool = False
    models: tuple[GroupId, ...] | None = None


class TokenLimit(Struct, frozen=True, gc=False, kw_only=True):
    """Tokens in a window; a cap of 0 is none."""

    enabled: bool = False
    group_cap: Count = 0
    user_cap: Count = 0
    window_seconds: Count = 0


class BudgetLimit(Struct, frozen=True, gc=False, kw_only=True):
    """The same of money."""

    enabled: bool = False
    group_cap_usd: Amount = 0.0
    user_cap_usd: Amount = 0.0
    window_seconds: Count = 0


class Limits(Struct, frozen=True, gc=False, kw_only=True):
    """The two halves; one that is disabled may still hold caps."""

    token_limit: TokenLimit = TokenLimit()
    budget_limit: BudgetLimit = BudgetLimit()


class AgentPolicy(Struct, frozen=True, gc=False, kw_only=True):
    """Who may use which providers (`/api/agent-network/policies`)."""

    id: str
    name: str = ""
    enabled: bool = False
    source_groups: tuple[str, ...] | None = None
    destination_provider_ids: tuple[str, ...] | None = None
    guardrail_ids: tuple[str, ...] | None = None
    limits: Limits = Limits()


class AgentBudgetRule(Struct, frozen=True, gc=False, kw_only=True):
    """A limit beside those of policies (`/api/agent-network/budget-rules`)."""

    id: str
    name: str = ""
    enabled: bool = False
    target_groups: tuple[str, ...] | None = None
    target_users: tuple[str, ...] | None = None
    limits: Limits = Limits()


class AgentGuardrail(Struct, frozen=True, gc=False, kw_only=True):
    """What policies refer to (`/api/agent-network/guardrails`)."""

    id: str


class AgentSettings(Struct, frozen=True, gc=False, kw_only=True):
    """What is kept of requests (`/api/agent-network/settings`)."""

    enable_log_collection: bool = False
    enable_prompt_collection: bool = False
    redact_pii: bool = False
    dedicated: bool = False
    access_log_retention_days: Count = 0


class ConsumptionRow(Struct, frozen=True, gc=False, kw_only=True):
    """What a group or a consumer has used in one window; it names no limit."""

    dimension_kind: str = ""
    dimension_id: str = ""
    window_seconds: Count = 0
    window_start_utc: Instant = None
    tokens_input: Count = 0
    tokens_output: Count = 0
    cost_usd: Amount = 0.0


class UsageBucket(Struct, frozen=True, gc=False, kw_only=True):
    """What was used in a day."""

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
    """A page of the access log, of which its one row is not read."""

    total_records: Count | None = None

"""The Agent Network: records, decoders, queries and time windows, and its paths.

Rows of past windows are dropped at once. Of a page of the access log only the number of
records is read: its one row may hold a prompt.

The records have only the fields that are exported: no key, no address, no prompt.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import fsum
from operator import attrgetter
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields, replace

from api_exporter.exposition.text import timestamp
from api_exporter.netbird.bodies import (
    NO_CONTEXT,
    DecodeContext,
    Decoded,
    DocumentDecoder,
    ListDecoder,
    decode_record,
)
from api_exporter.netbird.elements import (
    DECODE_ERRORS,
    decode_problem,
    replace_surrogates,
)
from api_exporter.netbird.records import Count, GroupId, Instant, ShownText
from api_exporter.netbird.resources import MINUTE, Resource, length_of
from api_exporter.ports import UpstreamError

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
    """The usage of one day.

    Attributes:
        cost_usd: the sum of the others. NetBird 0.74 sends it alone.
    """

    period_start: str = ""
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_creation_tokens: Count = 0
    cost_usd: Amount = 0.0
    input_cost_usd: Amount = 0.0
    output_cost_usd: Amount = 0.0
    cached_input_cost_usd: Amount = 0.0
    cache_creation_cost_usd: Amount = 0.0


class RequestCount(Struct, frozen=True, gc=False, kw_only=True):
    """A page of the access log. Its one row is not read."""

    total_records: Count


DAY_SECONDS = 86400


class Consumption(Struct, frozen=True, kw_only=True):
    """The consumption that counts against limits.

    Attributes:
        current: the rows of windows that held the time of the request.
    """

    rows: int
    current: tuple[ConsumptionRow, ...] = ()


class UsagePeriod(Struct, frozen=True, kw_only=True):
    """The usage of some days, which are counted in UTC.

    Attributes:
        buckets: one for each day. They are added up when they are published: a sum of
            rounded sums would differ in its last digit.
    """

    first: str
    last: str
    buckets: tuple[UsageBucket, ...]


class Usage(Struct, frozen=True, kw_only=True):
    """The usage of this month. Each part is None until it was read."""

    earlier: UsagePeriod | None = None
    today: UsagePeriod | None = None


class Denials(Struct, frozen=True, kw_only=True):
    """The number of requests that were denied on a day."""

    day: str
    requests: int


def day(now: float) -> str:
    """Return the UTC date of a time in seconds since the epoch."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def next_midnight(now: float) -> float:
    return (now // DAY_SECONDS + 1) * DAY_SECONDS


def window_start(row: ConsumptionRow) -> float:
    """Return when the window of a row began, or 0 if that is not after 1970-01-01."""
    return timestamp(row.window_start_utc) or 0.0


def is_current(row: ConsumptionRow, now: float) -> bool:
    """Return whether the row's window holds a time. Windows count from the epoch."""
    length = row.window_seconds
    return length > 0 and window_start(row) == now // length * length


def window_end(consumption: Sequence[Consumption], now: float) -> float | None:
    """Return the earliest end of a window that has not ended; None without one."""
    ends = (
        window_start(row) + row.window_seconds
        for found in consumption
        for row in found.current
    )
    return min((end for end in ends if end > now), default=None)


_SUMMED_FIELDS = [f.name for f in fields(UsageBucket) if f.type is not str]


def add_up(buckets: Sequence[UsageBucket]) -> UsageBucket:
    """Return the sums of all fields. They are exact and then rounded once."""
    sums = {
        name: (fsum if name.endswith("_usd") else sum)(map(attrgetter(name), buckets))
        for name in _SUMMED_FIELDS
    }
    return replace(UsageBucket(), **sums)


def wanted_period(usage: Usage | None, now: float) -> tuple[str, str]:
    """Return the first and last day to request: earlier days once a day, else today."""
    today = datetime.fromtimestamp(now, UTC).date()
    first, last = today.replace(day=1), today - timedelta(1)
    wanted = first.isoformat(), last.isoformat()
    earlier = usage and usage.earlier
    if today == first or (earlier and (earlier.first, earlier.last) == wanted):
        return today.isoformat(), today.isoformat()
    return wanted


def usage_query(known: Sequence[Usage], now: float) -> str:
    """Return the query for usage. Without a start NetBird would read 90 days."""
    first, last = wanted_period(next(iter(known), None), now)
    end = "" if last == day(now) else f"&end_date={last}T23:59:59.999999999Z"
    return f"?granularity=day&start_date={first}T00:00:00Z{end}"


def denials_query(now: float) -> str:
    return f"?decision=deny&page_size=1&start_date={day(now)}T00:00:00Z"


class _CurrentRows(ListDecoder[ConsumptionRow]):
    """Rows of windows that hold a time. All other rows are read and dropped."""

    def __init__(self, now: float) -> None:
        super().__init__(ConsumptionRow, key=self._window)
        self.count = 0
        self._now = now

    def read(self, raw: msgspec.Raw, wrong: set[str]) -> Struct:
        # A row has no id of its own, so its key may be longer than one.
        row = decode_record(self._decoder, raw, wrong)
        self.count += 1
        return row

    def _window(self, row: ConsumptionRow) -> str:
        """Return the key of a consumer and a window length; "" drops the row."""
        if not is_current(row, self._now):
            return ""
        return f"{row.dimension_kind}\0{row.window_seconds}\0{row.dimension_id}"


class ConsumptionDecoder:
    """A decoder of the list of consumption, which holds all windows of the past."""

    record = Consumption

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        rows = _CurrentRows(known.now)
        found = rows.decode(body, DecodeContext(inspector=known.inspector))
        current = tuple(r for r in found.records if isinstance(r, ConsumptionRow))
        consumption = Consumption(rows=rows.count, current=current)
        return Decoded(
            (consumption,), found.rejected, found.errors, unread_count=rows.count - 1
        )


class UsageDecoder:
    """A decoder of the buckets of the requested period."""

    record = Usage
    _buckets = ListDecoder(UsageBucket, key="period_start")

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        usages = (usage for usage in known.before if isinstance(usage, Usage))
        usage = next(usages, Usage())
        first, last = wanted_period(usage, known.now)
        buckets = self._buckets.decode(body, DecodeContext(inspector=known.inspector))
        every = tuple(b for b in buckets.records if isinstance(b, UsageBucket))
        period = UsagePeriod(first=first, last=last, buckets=every)
        part = "today" if last == day(known.now) else "earlier"
        usage = replace(usage, **{part: period})
        count = len(every) - 1
        return Decoded((usage,), buckets.rejected, buckets.errors, unread_count=count)


class DenialsDecoder:
    """A decoder of a page of the access log. Its one row is neither read nor kept."""

    record = Denials
    _decoder = msgspec.json.Decoder(RequestCount)

    def decode(self, body: bytes, known: DecodeContext = NO_CONTEXT) -> Decoded:
        try:
            count = self._decoder.decode(
                replace_surrogates(body).decode("utf-8", "replace")
            )
        except DECODE_ERRORS as error:
            raise UpstreamError("decode", decode_problem(error)) from None
        return Decoded((Denials(day=day(known.now), requests=count.total_records),))


AGENT_PROVIDERS = Resource(
    "agent_providers",
    "api/agent-network/providers",
    ListDecoder(AgentProvider),
    15 * MINUTE,
    idle_intervals=2.0,
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

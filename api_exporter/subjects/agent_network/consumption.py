"""The consumption of agents, and the groups and users that limits bind.

A row of consumption names no limit: all limits with windows of one length share it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache

from msgspec import Struct

from api_exporter.netbird.inventory import Inventory, joined_once
from api_exporter.subjects.agent_network.resources import (
    AGENT_BUDGET_RULES,
    AGENT_CONSUMPTION,
    AGENT_DENIALS,
    AGENT_POLICIES,
    AGENT_PROVIDERS,
    AGENT_SETTINGS,
    AgentBudgetRule,
    AgentPolicy,
    ConsumptionRow,
    Usage,
    UsageBucket,
    add_up,
    day,
    window_start,
)


class Limit(Struct, frozen=True, kw_only=True):
    """A cap of an enabled policy or rule, for each group or each user.

    Attributes:
        kind: `policy` or `budget_rule`.
        per: `group` or `user`.
        unit: `tokens` or `usd`.
        booked: true if NetBird counts consumption against it.
    """

    kind: str
    id: str
    name: str
    per: str
    unit: str
    window_seconds: int
    cap: float
    groups: tuple[str, ...]
    users: tuple[str, ...] = ()
    booked: bool = True


def limits(inventory: Inventory) -> Sequence[Limit]:
    """Return the enabled limits above 0 of enabled policies and rules."""
    found: list[Limit] = []
    for policy in AGENT_POLICIES.of(inventory) or ():
        tokens, budget = policy.limits.token_limit, policy.limits.budget_limit
        # Fact: of a policy with two windows NetBird books only that of tokens.
        split = (
            tokens.enabled
            and budget.enabled
            and tokens.window_seconds != budget.window_seconds
        )
        groups = policy.source_groups or ()
        found += _limits("policy", policy, groups, booked=not split)
    for rule in AGENT_BUDGET_RULES.of(inventory) or ():
        groups, users = rule.target_groups or (), rule.target_users or ()
        found += _limits("budget_rule", rule, groups, users)
    return found


def _limits(
    kind: str,
    record: AgentPolicy | AgentBudgetRule,
    groups: tuple[str, ...],
    users: tuple[str, ...] = (),
    *,
    booked: bool = True,
) -> Iterator[Limit]:
    tokens, budget = record.limits.token_limit, record.limits.budget_limit
    for unit, limit, caps in (
        ("tokens", tokens, (tokens.group_cap, tokens.user_cap)),
        ("usd", budget, (budget.group_cap_usd, budget.user_cap_usd)),
    ):
        for per, cap in zip(("group", "user"), caps, strict=True):
            if record.enabled and limit.enabled and cap > 0:
                yield Limit(
                    kind=kind,
                    id=record.id,
                    name=record.name,
                    per=per,
                    unit=unit,
                    window_seconds=limit.window_seconds,
                    cap=cap,
                    groups=groups,
                    users=users,
                    booked=booked or unit == "tokens",
                )


def current_rows(inventory: Inventory) -> Iterator[ConsumptionRow]:
    """Yield the rows of consumption; a row whose window has ended is 0."""
    for found in AGENT_CONSUMPTION.of(inventory) or ():
        for row in found.current:
            if inventory.now < window_start(row) + row.window_seconds:
                yield row
            else:
                yield ConsumptionRow(
                    dimension_kind=row.dimension_kind,
                    dimension_id=row.dimension_id,
                    window_seconds=row.window_seconds,
                )


Unit = tuple[str, int, str]
"""`group` or `user`, the window in seconds, and `tokens` or `usd`."""


def consumption_by_unit(inventory: Inventory) -> Mapping[Unit, Mapping[str, float]]:
    """Return the consumption of each group and each user or peer, by id."""
    found: dict[Unit, dict[str, float]] = {}
    for row in current_rows(inventory):
        tokens = float(row.tokens_input + row.tokens_output)
        for unit, amount in (("tokens", tokens), ("usd", row.cost_usd)):
            kind = row.dimension_kind, row.window_seconds, unit
            found.setdefault(kind, {})[row.dimension_id] = amount
    return found


@joined_once
def used_ratios(inventory: Inventory) -> Mapping[Limit, float]:
    """Return the largest share of each limit that a bound group or user has used.

    A share is at least 0 and may exceed 1. A limit is left out if it binds no known
    group or user, or if its window is shorter than the refresh interval.
    """
    interval = inventory.intervals.get(
        AGENT_CONSUMPTION.name, AGENT_CONSUMPTION.interval
    )
    every = [x for x in limits(inventory) if x.booked and x.window_seconds >= interval]
    if not every:
        return {}
    bound = _BoundConsumers(inventory, every)
    largest = ((limit, bound.largest(limit)) for limit in every)
    return {limit: max(x, 0.0) / limit.cap for limit, x in largest if x is not None}


class _BoundConsumers:
    """The groups and users that limits bind, and their largest consumption.

    The maximum of several groups is that of their maxima. So each group is visited
    once for each unit.
    """

    def __init__(self, inventory: Inventory, every: Iterable[Limit]) -> None:
        self._amounts = consumption_by_unit(inventory)
        self._consumers: dict[str, set[str]] = {}
        self._largest: dict[tuple[Unit, str | None], float] = {}
        user_of = {peer.id: peer.user_id for peer in inventory.peers or ()}
        self._listed = {*user_of, *(user.id for user in inventory.users or ())}
        wanted = {g for limit in every if limit.per == "user" for g in limit.groups}
        for group in inventory.groups or ():
            found = self._consumers.setdefault(group.id, set())
            members = group.peers or () if group.id in wanted else ()
            ids = (m.id for m in members if m.id in user_of)
            found.update(id_ for peer in ids for id_ in (peer, user_of[peer]) if id_)

    def largest(self, limit: Limit) -> float | None:
        """Return the largest amount; None if the limit binds no known group or user."""
        unit = limit.per, limit.window_seconds, limit.unit
        amounts = self._amounts.get(unit, {})
        if limit.per == "group":
            bound = [id_ for id_ in limit.groups if id_ in self._consumers]
            return max((amounts.get(id_, 0.0) for id_ in bound), default=None)
        bound = [id_ for id_ in limit.users if id_ in self._listed]
        found = [amounts.get(id_, 0.0) for id_ in bound]
        binds_all = limit.kind == "budget_rule" and not (limit.groups or limit.users)
        for group in (None,) if binds_all else limit.groups:
            ids = self._listed if group is None else self._consumers.get(group)
            if ids:
                if (unit, group) not in self._largest:
                    self._largest[unit, group] = _largest(amounts, ids)
                found.append(self._largest[unit, group])
        return max(found, default=None)


def _largest(amounts: Mapping[str, float], ids: Set[str]) -> float:
    # Iterate over the smaller one of both.
    if len(ids) < len(amounts):
        return max((amounts[id_] for id_ in ids if id_ in amounts), default=0.0)
    return max((a for id_, a in amounts.items() if id_ in ids), default=0.0)


ListedIds = Callable[[str], frozenset[str]]


def listed_ids(inventory: Inventory) -> ListedIds:
    """Return a function that finds the ids of a resource's objects once."""

    @cache
    def ids(name: str) -> frozenset[str]:
        return frozenset(record.id for record in inventory.records.get(name) or ())

    return ids


Misses = tuple[tuple[str, str], ...]
"""The kind and id of each object that is named but in no list, sorted."""


def policy_misses(listed: ListedIds, policy: AgentPolicy) -> Misses:
    return (
        *_missing("group", policy.source_groups, listed("groups")),
        *_missing(
            "provider", policy.destination_provider_ids, listed("agent_providers")
        ),
        *_missing("guardrail", policy.guardrail_ids, listed("agent_guardrails")),
    )


def rule_misses(listed: ListedIds, rule: AgentBudgetRule) -> Misses:
    """Return the missing objects that a rule names. A target user may be a peer."""
    return (
        *_missing("group", rule.target_groups, listed("groups")),
        *_missing("user", rule.target_users, listed("users"), listed("peers")),
    )


def _missing(kind: str, ids: Iterable[str] | None, *listed: frozenset[str]) -> Misses:
    missing = frozenset(ids or ()).difference(*listed)
    return tuple((kind, id_) for id_ in sorted(missing))


def enabled_providers(inventory: Inventory) -> frozenset[str]:
    return frozenset(p.id for p in AGENT_PROVIDERS.of(inventory) or () if p.enabled)


def usage_by_period(
    known: Iterable[Usage], now: float
) -> Iterator[tuple[str, UsageBucket]]:
    """Yield the usage of today and of this month; nothing if that of today is unknown.

    From midnight until the next reading the usage of today is 0.
    """
    for parts in known:
        today, earlier = parts.today, parts.earlier
        if today is None:
            continue
        date = day(now)
        periods = [today]
        if earlier is not None and earlier.last >= today.first:
            periods = [earlier]
        elif earlier is not None:
            periods = [earlier, today]
        yield "day", add_up(today.buckets if today.first == date else ())
        this_month = [p for p in periods if p.first[:7] == date[:7]]
        yield "month", add_up([bucket for p in this_month for bucket in p.buckets])


def month_cost(known: Iterable[Usage], now: float) -> float | None:
    """Return US dollars since the first of the month; None while unknown."""
    for period, used in usage_by_period(known, now):
        if period == "month":
            return used.cost_usd
    return None


TOKEN_KINDS = ("input", "output", "cached_input", "cache_creation")


def denied_count(inventory: Inventory) -> tuple[int, ...]:
    """Return the number of requests denied today; () without a log to count them."""
    if not any(s.enable_log_collection for s in AGENT_SETTINGS.of(inventory) or ()):
        return ()
    denials, today = AGENT_DENIALS.of(inventory) or (), day(inventory.now)
    return (sum(found.requests for found in denials if found.day == today),)

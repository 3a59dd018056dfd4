"""What agents used of their limits, and whom a limit binds.

A row of what was used names no limit: all limits with windows of one length share it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum

from msgspec import Struct

from api_exporter.exposition.tally import chunks
from api_exporter.netbird.agent_bodies import (
    Consumption,
    Usage,
    added,
    day,
    start,
)
from api_exporter.netbird.agent_records import (
    AgentBudgetRule,
    AgentPolicy,
    ConsumptionRow,
    UsageBucket,
)
from api_exporter.netbird.facts.members import Steps
from api_exporter.netbird.inventory import Inventory


class Limit(Struct, frozen=True, kw_only=True):
    """A cap of an enabled policy or rule, for each group or each user.

    Attributes:
        of: `policy` or `budget_rule`.
        per: `group` or `user`.
        unit: `tokens` or `usd`.
        window: seconds.
        groups: ids of those that it names.
        users: likewise.
        everybody: whether it names nobody and binds all.
        booked: whether the server counts against it.
    """

    of: str
    id: str
    name: str
    per: str
    unit: str
    window: int
    cap: float
    groups: tuple[str, ...]
    users: tuple[str, ...] = ()
    everybody: bool = False
    booked: bool = True


class Used(Struct, frozen=True, kw_only=True):
    """The share of a limit's cap that those have used who are known to be bound.

    Attributes:
        most: the largest, which may exceed 1.
        by: the share of each who has used any, by id.
    """

    most: float
    by: Mapping[str, float]


def limits(inventory: Inventory) -> Steps[Sequence[Limit]]:
    """Those of enabled policies and rules, where that half is enabled and has a cap."""
    yield from ()
    found: list[Limit] = []
    for policy in inventory.agent_policies or ():
        tokens, budget = policy.limits.token_limit, policy.limits.budget_limit
        # Fact: the server books only the token window of a policy with two.
        split = (
            tokens.enabled
            and budget.enabled
            and tokens.window_seconds != budget.window_seconds
        )
        groups = policy.source_groups or ()
        found += _limits("policy", policy, groups, booked=not split)
    for rule in inventory.agent_budget_rules or ():
        groups, users = rule.target_groups or (), rule.target_users or ()
        found += _limits("budget_rule", rule, groups, users)
    return found


def _limits(
    of: str,
    record: AgentPolicy | AgentBudgetRule,
    groups: tuple[str, ...],
    users: tuple[str, ...] = (),
    *,
    booked: bool = True,
) -> Iterator[Limit]:
    tokens, budget = record.limits.token_limit, record.limits.budget_limit
    for unit, half, caps in (
        ("tokens", tokens, (tokens.group_cap, tokens.user_cap)),
        ("usd", budget, (budget.group_cap_usd, budget.user_cap_usd)),
    ):
        for per, cap in zip(("group", "user"), caps, strict=True):
            if record.enabled and half.enabled and cap > 0:
                yield Limit(
                    of=of,
                    id=record.id,
                    name=record.name,
                    per=per,
                    unit=unit,
                    window=half.window_seconds,
                    cap=cap,
                    groups=groups,
                    users=users,
                    everybody=of == "budget_rule" and not (groups or users),
                    booked=booked or unit == "tokens",
                )


def running(consumption: Iterable[Consumption], now: float) -> Iterator[ConsumptionRow]:
    """Its rows; one whose window has ended since says that nothing was used."""
    for found in consumption:
        for row in found.current:
            if now < start(row) + row.window_seconds:
                yield row
            else:
                yield ConsumptionRow(
                    dimension_kind=row.dimension_kind,
                    dimension_id=row.dimension_id,
                    window_seconds=row.window_seconds,
                )


def used(inventory: Inventory) -> Steps[Mapping[Limit, Used]]:
    """What was used of each limit that can be told of: not where nobody is known to be
    bound, nor of windows that end between two readings.
    """
    rows: dict[tuple[str, int], list[ConsumptionRow]] = {}
    for row in running(inventory.agent_consumption or (), inventory.now):
        rows.setdefault((row.dimension_kind, row.window_seconds), []).append(row)
    yield
    bound = _Bound(inventory)
    found: dict[Limit, Used] = {}
    for limit in (yield from limits(inventory)):
        if not limit.booked or limit.window < inventory.consumption_period:
            continue
        ids = yield from bound.by(limit)
        if not ids:
            continue
        by: dict[str, float] = {}
        for some in chunks(rows.get((limit.per, limit.window), ())):
            by.update(
                {
                    row.dimension_id: _amount(row, limit.unit) / limit.cap
                    for row in some
                    if row.dimension_id in ids
                }
            )
            yield
        found[limit] = Used(most=max(by.values(), default=0.0), by=by)
    return found


def _amount(row: ConsumptionRow, unit: str) -> float:
    return row.tokens_input + row.tokens_output if unit == "tokens" else row.cost_usd


class _Bound:
    """Whom limits bind. Groups that several of them name are joined once."""

    def __init__(self, inventory: Inventory) -> None:
        self._peers = inventory.peers or ()
        self._groups = {group.id: group for group in inventory.groups or ()}
        self._listed = {user.id for user in inventory.users or ()}
        self._user_of: dict[str, str] = {}
        self._members: dict[tuple[str, ...], set[str]] = {}

    def by(self, limit: Limit) -> Steps[set[str]]:
        """The ids of groups, or of users and peers."""
        if limit.per == "group":
            return set(limit.groups) & self._groups.keys()
        if not self._user_of:
            for some in chunks(self._peers):
                self._user_of.update({peer.id: peer.user_id for peer in some})
                self._listed.update([peer.id for peer in some])
                yield
        if limit.everybody:
            return self._listed
        members = yield from self._consumers(limit.groups)
        return members | (set(limit.users) & self._listed)

    def _consumers(self, groups: tuple[str, ...]) -> Steps[set[str]]:
        """The members of these groups that are listed peers, and their users."""
        if groups not in self._members:
            found: set[str] = set()
            for group in map(self._groups.get, groups):
                for some in chunks(() if group is None else group.peers or ()):
                    ids = [m.id for m in some if m.id in self._user_of]
                    found.update(ids, map(self._user_of.__getitem__, ids))
                    yield
            found.discard("")
            self._members[groups] = found
        return self._members[groups]


Ids = Mapping[str, frozenset[str]]
"""Those that the lists have, by resource."""


def listed_ids(inventory: Inventory) -> Steps[Ids]:
    """What policies and rules may refer to."""
    found: dict[str, frozenset[str]] = {}
    for name in ("groups", "users", "peers", "agent_providers", "agent_guardrails"):
        found[name] = frozenset(record.id for record in getattr(inventory, name) or ())
        yield
    return found


Misses = tuple[tuple[str, str], ...]
"""Kind and id of each object that is named and is in no list, sorted."""


def policy_misses(listed: Ids, policy: AgentPolicy) -> Misses:
    """Return the missing objects that a policy names."""
    return (
        *_missing("group", policy.source_groups, listed["groups"]),
        *_missing(
            "provider", policy.destination_provider_ids, listed["agent_providers"]
        ),
        *_missing("guardrail", policy.guardrail_ids, listed["agent_guardrails"]),
    )


def rule_misses(listed: Ids, rule: AgentBudgetRule) -> Misses:
    """Return the missing objects that a rule names. A machine without a user is a
    peer.
    """
    return (
        *_missing("group", rule.target_groups, listed["groups"]),
        *_missing("user", rule.target_users, listed["users"], listed["peers"]),
    )


def _missing(kind: str, ids: Iterable[str] | None, *listed: frozenset[str]) -> Misses:
    missing = frozenset(ids or ()).difference(*listed)
    return tuple((kind, id_) for id_ in sorted(missing))


def enabled_providers(inventory: Inventory) -> Steps[frozenset[str]]:
    """The ids of those that are enabled."""
    yield from ()
    return frozenset(p.id for p in inventory.agent_providers or () if p.enabled)


def usage(known: Iterable[Usage], now: float) -> Iterator[tuple[str, UsageBucket]]:
    """What was used today and this month; nothing while today was never read.

    A day that is over since says nothing of the next one.
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
        yield "day", added(today.buckets if today.first == date else ())
        this_month = [p for p in periods if p.first[:7] == date[:7]]
        yield "month", added([bucket for p in this_month for bucket in p.buckets])


def month_cost(known: Iterable[Usage], now: float) -> float | None:
    """US dollars since the first of the month; None while that is not known."""
    for period, used in usage(known, now):
        if period == "month":
            return cost(used)
    return None


def cost(used: UsageBucket) -> float:
    return fsum(
        (
            used.input_cost_usd,
            used.output_cost_usd,
            used.cached_input_cost_usd,
            used.cache_creation_cost_usd,
        )
    )


def denied(inventory: Inventory) -> int | None:
    """Requests that were denied today; None where nobody knows: without a log none are
    counted.
    """
    settings, denials = inventory.agent_settings or (), inventory.agent_denials or ()
    if not any(settings.enable_log_collection for settings in settings):
        return None
    today = day(inventory.now)
    return sum(found.requests for found in denials if found.day == today)

"""The request plan of each account: accounts with one token share its limit. Pure.

Intervals are planned for four fifths of a stated rate. The rest is for retries and for
the first refreshes. The budget allows nine tenths. The last tenth is for other users of
the token, such as `--check`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.resources import ACCESS_LOG, PEERS
from api_exporter.refresh.budget import STRICTEST, Budget, RateLimit
from api_exporter.settings.definitions import AccountSettings
from api_exporter.subjects import agent_network
from api_exporter.subjects.table import RULES, Selection


class RequestPlan(Struct, frozen=True):
    """The budget of an account, and the intervals that fit into it.

    Attributes:
        selection: with intervals that fit into the token's limit, if that is stated.
        intervals_note: a line about lengthened intervals; "" if there are none.
        requests_warning: a line about many requests or a limited access log, or "".
    """

    budget: Budget
    selection: Selection
    intervals_note: str
    requests_warning: str

    def is_like(self, other: "RequestPlan") -> bool:
        """Return whether an account may exchange the two while it runs."""
        same_intervals = self.selection.intervals == other.selection.intervals
        return self.budget is other.budget and same_intervals


def request_plans(
    accounts: Iterable[AccountSettings],
    known: Mapping[str, Budget] = MappingProxyType({}),
) -> dict[str, RequestPlan]:
    """Return the request plans by account.

    Args:
        known: budgets by account, which stay in use while the limit is the same.
    """
    tokens: dict[tuple[str, str], list[AccountSettings]] = {}
    for account in accounts:
        tokens.setdefault(account.budget_key(), []).append(account)
    taken: set[Budget] = set()
    groups = tokens.values()
    return {n: one for users in groups for n, one in _plans(users, known, taken)}


def _plans(
    accounts: list[AccountSettings], known: Mapping[str, Budget], taken: set[Budget]
) -> Iterator[tuple[str, RequestPlan]]:
    """Yield the plans of accounts with one token; `taken` has budgets of others."""
    limit = next(filter(None, (a.upstream_rate_limit for a in accounts)), None)
    old = [known[a.name] for a in accounts if a.name in known]
    free = (b for b in old if b.limit == limit and b not in taken)
    budget = next(free, None) or Budget(limit)
    taken.add(budget)
    selections = {
        account.name: account.select(account.refresh_intervals, account.metric_filter())
        for account in accounts
    }
    if limit is None:
        for name, selected in selections.items():
            warning = describe_short_intervals(selected.intervals)
            yield name, RequestPlan(budget, selected, "", warning)
        return
    fitting = fit_intervals(
        [selected.intervals for selected in selections.values()], limit
    )
    for (name, selected), intervals in zip(selections.items(), fitting, strict=True):
        note = describe_fitted(selected.intervals, intervals, limit)
        requests_warning = describe_access_log(selected.intervals, intervals, limit)
        fitted = replace(selected, intervals=intervals)
        yield name, RequestPlan(budget, fitted, note, requests_warning)


PLANNED_FRACTION = 0.8
"""The fraction of the stated rate for the intervals."""

_ROUNDING = 1e-9
"""Requests a minute that may be rounding errors: no interval is lengthened for them."""

MAX_LENGTHENED = 3600.0
"""Seconds of an interval, unless even the intervals of the peers are lengthened."""


def per_minute(accounts: Iterable[Mapping[str, float]]) -> float:
    """Return the requests a minute of accounts, given seconds by resource.

    Resources that may be dormant do not count. When they are in use, the budget keeps
    the limit.
    """
    return sum(
        60.0 / interval
        for intervals in accounts
        for name, interval in intervals.items()
        if name not in RULES.dormant_without
    )


def fit_intervals(
    accounts: Sequence[Mapping[str, float]], limit: RateLimit
) -> list[dict[str, float]]:
    """Return intervals for all accounts of a token that fit into its limit.

    The access log's intervals are lengthened first, then the longest, up to an hour,
    then the next longest. If that is not enough, all intervals are lengthened, those
    of the peers, too.

    Args:
        accounts: seconds by resource, for each account.
    """
    planned = PLANNED_FRACTION * limit[0]
    excess = per_minute(accounts) - planned
    logs = [intervals.get(ACCESS_LOG, MAX_LENGTHENED) for intervals in accounts]
    logs = [interval for interval in logs if interval < MAX_LENGTHENED]
    if logs and excess > _ROUNDING:
        rate = sum(60.0 / interval for interval in logs)
        factor = rate / max(rate - excess, len(logs) * 60.0 / MAX_LENGTHENED)
        accounts = [_slower(intervals, factor) for intervals in accounts]
        excess = per_minute(accounts) - planned
    others = Counter(
        interval
        for intervals in accounts
        for name, interval in intervals.items()
        if name not in {PEERS, ACCESS_LOG, *RULES.dormant_without}
        and interval < MAX_LENGTHENED
    )
    longer: dict[float, float] = {}
    for interval, count in sorted(others.items(), reverse=True):
        if excess > _ROUNDING:
            rate = count * 60.0 / interval
            kept = max(rate - excess, count * 60.0 / MAX_LENGTHENED)
            longer[interval] = max(interval, min(MAX_LENGTHENED, count * 60.0 / kept))
            excess -= rate - kept
    factor = 1.0 + (excess / planned if excess > _ROUNDING else 0.0)
    return [
        {
            name: factor
            * (interval if name == PEERS else longer.get(interval, interval))
            for name, interval in intervals.items()
        }
        for intervals in accounts
    ]


def _slower(intervals: Mapping[str, float], factor: float) -> Mapping[str, float]:
    if intervals.get(ACCESS_LOG, MAX_LENGTHENED) >= MAX_LENGTHENED:
        return intervals
    slower = min(MAX_LENGTHENED, max(1.0, factor) * intervals[ACCESS_LOG])
    return {**intervals, ACCESS_LOG: slower}


def describe_cost(requested: Mapping[str, float], limit: RateLimit | None) -> str:
    """Return a line that says how many requests a minute the settings cost.

    Args:
        requested: seconds by resource, of those that are requested.
    """
    rates = {name: 60.0 / interval for name, interval in requested.items()}
    total, log = sum(rates.values()), rates.get(ACCESS_LOG, 0.0)
    agents = sum(rates.get(r.name, 0.0) for r in agent_network.SUBJECT.resources)
    line = (
        f"{total:.2f} requests a minute, of which access log {log:.2f} and Agent"
        f" Network {agents:.2f}; "
    )
    if limit is not None:
        return f"{line}the limit is UPSTREAM_RATE_LIMIT={limit[0]}/{limit[1]}"
    if total <= STRICTEST:
        return f"{line}NetBird's strictest limit is {STRICTEST:g}"
    return (
        f"{line}that is more than NetBird's strictest limit, {STRICTEST:g}: set"
        " UPSTREAM_RATE_LIMIT if its limiter is on"
    )


QUICK = 30.0
"""Requests a minute of an account above which the log has a warning."""


def describe_short_intervals(intervals: Mapping[str, float]) -> str:
    """Return a warning about short intervals without a stated limit, or ""."""
    total = sum(60.0 / interval for interval in intervals.values())
    if total <= QUICK:
        return ""
    return (
        f"the refresh intervals need {total:.0f} requests a minute; NetBird's strictest"
        f" limit is {STRICTEST:g}: lengthen REFRESH_INTERVALS or set"
        " UPSTREAM_RATE_LIMIT"
    )


def describe_access_log(
    before: Mapping[str, float], after: Mapping[str, float], limit: RateLimit
) -> str:
    """Return a line that says how a limit slows the access log; "" if it does not."""
    if ACCESS_LOG not in before or after[ACCESS_LOG] <= before[ACCESS_LOG]:
        return ""
    wanted, left = 60.0 / before[ACCESS_LOG], 60.0 / after[ACCESS_LOG]
    return (
        f"UPSTREAM_RATE_LIMIT={limit[0]}/{limit[1]} allows the access log {left:.2g} of"
        f" {wanted:.2g} requests a minute: rows above {100 * left:.0f} a minute"
        " are late"
    )


def describe_fitted(
    before: Mapping[str, float], after: Mapping[str, float], limit: RateLimit
) -> str:
    """Return a line that says which intervals are lengthened; "" if none is.

    For example `refresh intervals are lengthened to fit 120 requests a minute: users
    10m -> 25m`.
    """
    names: dict[str, list[str]] = {}
    for name, interval in before.items():
        if after[name] > interval:
            change = f"{_format_seconds(interval)} -> {_format_seconds(after[name])}"
            names.setdefault(change, []).append(name)
    if not names:
        return ""
    changes = "; ".join(f"{', '.join(of)} {change}" for change, of in names.items())
    words = f"refresh intervals are lengthened to fit {limit[0]} requests a minute: "
    return words + changes


def _format_seconds(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("m", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g}{unit}"
    return f"{seconds:.3g}s"

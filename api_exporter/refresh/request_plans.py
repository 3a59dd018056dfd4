"""The request plan of each account: accounts with one token share its limit."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.refresh.budget import Budget
from api_exporter.refresh.rate_limits import (
    describe_access_log,
    describe_fitted,
    describe_short_intervals,
    fit_intervals,
)
from api_exporter.settings.definitions import AccountSettings
from api_exporter.subjects.table import Selection


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
        same_periods = self.selection.periods == other.selection.periods
        return self.budget is other.budget and same_periods


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
    return {n: one for users in tokens.values() for n, one in _plans(users, known)}


def _plans(
    accounts: list[AccountSettings], known: Mapping[str, Budget]
) -> Iterator[tuple[str, RequestPlan]]:
    limit = next(filter(None, (a.upstream_rate_limit for a in accounts)), None)
    old = [known[a.name] for a in accounts if a.name in known]
    budget = next((b for b in old if b.limit == limit), None) or Budget(limit)
    selections = {
        account.name: account.select(account.refresh_intervals, account.metric_filter())
        for account in accounts
    }
    if limit is None:
        for name, selected in selections.items():
            warning = describe_short_intervals(selected.periods)
            yield name, RequestPlan(budget, selected, "", warning)
        return
    fitting = fit_intervals(
        [selected.periods for selected in selections.values()], limit
    )
    for (name, selected), periods in zip(selections.items(), fitting, strict=True):
        note = describe_fitted(selected.periods, periods, limit)
        requests_warning = describe_access_log(selected.periods, periods, limit)
        fitted = replace(selected, periods=periods)
        yield name, RequestPlan(budget, fitted, note, requests_warning)

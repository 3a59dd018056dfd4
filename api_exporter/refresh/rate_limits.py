"""Intervals that fit into a stated rate limit, for all accounts of a token. Pure.

Intervals are planned for four fifths of the stated rate. The rest is for retries and
for the first refreshes. The budget allows nine tenths. The last tenth is for other
users of the token, such as `--check`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from api_exporter.netbird.inventory import OF_AGENTS
from api_exporter.netbird.resources import ACCESS_LOG, UP

Limit = tuple[int, int]
"""The allowed requests a minute, and the allowed burst of requests."""

PLANNED = 0.8
KEPT = 0.9
"""Fractions of the stated rate: for the intervals, and for all requests."""

KEPT_BURST = 0.5
"""The fraction of the stated burst that one start may use; a restart uses the rest."""

_DUST = 1e-9
"""Requests a minute that may be rounding errors: no interval is lengthened for them."""

LONGEST = 3600.0
"""Seconds: an interval becomes longer only if those of the peers do, too."""


def per_minute(accounts: Iterable[Mapping[str, float]]) -> float:
    """Return the requests a minute of accounts, given seconds by resource.

    Resources that may be dormant do not count. When they are in use, the budget keeps
    the limit.
    """
    return sum(
        60.0 / period
        for periods in accounts
        for name, period in periods.items()
        if name not in OF_AGENTS
    )


def stretched(
    accounts: Sequence[Mapping[str, float]], limit: Limit
) -> list[dict[str, float]]:
    """Return intervals for all accounts of a token that fit into its limit.

    The access log's intervals are lengthened first, then the longest, up to an hour,
    then the next longest. If that is not enough, all intervals are lengthened, those
    of the peers, too.

    Args:
        accounts: seconds by resource, for each account.
    """
    planned = PLANNED * limit[0]
    excess = per_minute(accounts) - planned
    logs = [periods.get(ACCESS_LOG, LONGEST) for periods in accounts]
    logs = [period for period in logs if period < LONGEST]
    if logs and excess > _DUST:
        asked = sum(60.0 / period for period in logs)
        factor = asked / max(asked - excess, len(logs) * 60.0 / LONGEST)
        accounts = [_slower(periods, factor) for periods in accounts]
        excess = per_minute(accounts) - planned
    others = Counter(
        period
        for periods in accounts
        for name, period in periods.items()
        if name not in {UP, ACCESS_LOG, *OF_AGENTS} and period < LONGEST
    )
    longer: dict[float, float] = {}
    for period, count in sorted(others.items(), reverse=True):
        if excess > _DUST:
            asked = count * 60.0 / period
            kept = max(asked - excess, count * 60.0 / LONGEST)
            longer[period] = max(period, min(LONGEST, count * 60.0 / kept))
            excess -= asked - kept
    factor = 1.0 + (excess / planned if excess > _DUST else 0.0)
    return [
        {
            name: factor * (period if name == UP else longer.get(period, period))
            for name, period in periods.items()
        }
        for periods in accounts
    ]


def _slower(periods: Mapping[str, float], factor: float) -> Mapping[str, float]:
    if periods.get(ACCESS_LOG, LONGEST) >= LONGEST:
        return periods
    slower = min(LONGEST, max(1.0, factor) * periods[ACCESS_LOG])
    return {**periods, ACCESS_LOG: slower}


def describe_access_log(
    before: Mapping[str, float], after: Mapping[str, float], limit: Limit
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


def describe_stretched(
    before: Mapping[str, float], after: Mapping[str, float], limit: Limit
) -> str:
    """Return a line that says which intervals are lengthened; "" if none is.

    For example `refresh intervals are lengthened to fit 120 requests a minute: users
    10m -> 25m`.
    """
    names: dict[str, list[str]] = {}
    for name, period in before.items():
        if after[name] > period:
            change = f"{_short(period)} -> {_short(after[name])}"
            names.setdefault(change, []).append(name)
    if not names:
        return ""
    changes = "; ".join(f"{', '.join(of)} {change}" for change, of in names.items())
    words = f"refresh intervals are lengthened to fit {limit[0]} requests a minute: "
    return words + changes


def _short(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("m", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g}{unit}"
    return f"{seconds:.3g}s"

"""Whether METRICS_ALLOW and METRICS_DENY name anything that there is."""

from collections.abc import Mapping, Sequence

from api_exporter.collectors.choice import matches
from api_exporter.collectors.table import COLLECTORS
from api_exporter.settings.setting import masked
from api_exporter.settings.table import METRICS_ALLOW, METRICS_DENY
from api_exporter.settings.values import AccountSettings


def unmatched(
    accounts: Mapping[str, AccountSettings], *, all_accounts: bool
) -> list[str]:
    """A line for each pattern that names no metric of any account.

    Args:
        all_accounts: whether these are; else it may be meant for one of the others,
            whose collectors are not known.
    """
    on = frozenset[str]().union(*(a.collectors for a in accounts.values()))
    names = [
        family.name
        for collector in COLLECTORS
        if collector.name in on or not all_accounts
        for family in collector.families
    ]
    owners: dict[tuple[str, str], list[AccountSettings]] = {}
    for account in accounts.values():
        for pattern in account.metrics_allow:
            owners.setdefault((METRICS_ALLOW.name, pattern), []).append(account)
        for pattern in account.metrics_deny:
            owners.setdefault((METRICS_DENY.name, pattern), []).append(account)
    return [
        f"{setting}{_whose(found, accounts)}: {_shown(pattern, found)} names no metric"
        " of an enabled collector: docs/metrics.md lists them all"
        for (setting, pattern), found in owners.items()
        if not any(matches(name, (pattern,)) for name in names)
    ]


def _whose(
    owners: Sequence[AccountSettings], accounts: Mapping[str, AccountSettings]
) -> str:
    if len(owners) == len(accounts):
        return ""
    return f" of {', '.join(owner.name for owner in owners)}"


def _shown(pattern: str, owners: Sequence[AccountSettings]) -> str:
    """A token has plain characters, too, and may stand in the wrong place."""
    tokens = [owner.upstream_api_token for owner in owners]
    secret = any(token and token.reveal() in pattern for token in tokens)
    return repr("…" if secret else masked(pattern))

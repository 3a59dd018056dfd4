"""Settings without an effect, or with another one than their value says."""

from collections.abc import Iterator
from itertools import chain

from api_exporter.netbird.resource_state import max_age
from api_exporter.netbird.resources import OFF
from api_exporter.settings.definitions import (
    SETTING_BY_NAME,
    SETTINGS,
    AccountSettings,
    Settings,
)
from api_exporter.settings.setting import HTTPS
from api_exporter.subjects.table import COLLECTORS


def _is_set(owner: Settings | AccountSettings, name: str) -> bool:
    setting = SETTING_BY_NAME[name]
    return bool(getattr(owner, name.lower()) != setting.parse(setting.default or ""))


def _is_met(owner: Settings | AccountSettings, need: str) -> bool:
    if isinstance(owner, AccountSettings) and need == HTTPS:
        return owner.upstream_api_url.startswith("https:")
    return _is_set(owner, need)


def _has_metrics(account: AccountSettings) -> bool:
    permits = account.metric_filter().permits
    families = (c.families for c in COLLECTORS if c.name in account.collectors)
    return any(map(permits, chain.from_iterable(families)))


def unused_warnings(settings: Settings) -> Iterator[str]:
    """Yield a line for each setting without an effect in any account."""
    accounts = settings.accounts.values()
    for setting in filter(lambda setting: setting.needs, SETTINGS):
        name, needs = setting.name, setting.needs
        owners = [settings] if hasattr(settings, name.lower()) else accounts
        given = [owner for owner in owners if _is_set(owner, name)]
        if given and not any(_is_met(owner, need) for owner in given for need in needs):
            yield f"{name} has no effect: it needs {' or '.join(needs)}"
    requested = {r.name for a in accounts for r in a.select({}).resources}
    intervals = {
        name: None
        for account in accounts
        for name, period in account.refresh_intervals.items()
        if period != OFF and name not in requested
    }
    for name in intervals:
        yield (
            f"REFRESH_INTERVALS: {name} has no effect: the other settings do not"
            " need this resource"
        )
    too_short = {
        age: max_age(0, age)
        for account in accounts
        if (age := account.metrics_max_age) is not None
    }
    for age, used in too_short.items():
        if age < used:
            yield (
                f"METRICS_MAX_AGE: {age:g}s is too short: metrics expire after"
                f" {used:g}s or later"
            )
    if accounts and not any(map(_has_metrics, accounts)):
        yield "METRICS_DENY leaves out all metrics of the network"

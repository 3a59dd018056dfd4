"""Settings without an effect, or with another one than their value says."""

from collections.abc import Callable, Iterator
from itertools import chain

from msgspec import Struct

from api_exporter.netbird.resource_state import max_age
from api_exporter.netbird.resources import OFF
from api_exporter.settings.definitions import (
    ACCESS_SECTION,
    SECTIONS,
    SETTING_BY_NAME,
    AccountSettings,
    Settings,
)
from api_exporter.subjects.table import COLLECTORS


class Need(Struct, frozen=True):
    """The condition under which a setting of an account has an effect.

    Attributes:
        needs: the required settings, as text for the log.
    """

    setting: str
    needs: str
    is_met: Callable[[AccountSettings], bool]

    def is_set(self, account: AccountSettings) -> bool:
        setting = SETTING_BY_NAME[self.setting]
        default = setting.parse(setting.default or "")
        return bool(getattr(account, setting.name.lower()) != default)


def _uses_tls(account: AccountSettings) -> bool:
    return account.upstream_api_url.startswith("https:")


def _has_metrics(account: AccountSettings) -> bool:
    permits = account.metric_filter().permits
    families = (c.families for c in COLLECTORS if c.name in account.collectors)
    return any(map(permits, chain.from_iterable(families)))


_NEEDS = (
    Need(
        "EVENTS_CURSOR_FILE",
        "EVENTS_FILE",
        lambda account: account.events_file is not None,
    ),
    Need(
        "ACCESS_LOG_CURSOR_FILE",
        "ACCESS_LOG_FILE",
        lambda account: account.access_log_file is not None,
    ),
    Need(
        "ACCESS_LOG_REQUESTS_PER_MINUTE",
        "ACCESS_LOG_FILE or ACCESS_LOG_METRICS",
        lambda account: account.reads_access_log,
    ),
    Need(
        "UPSTREAM_CLIENT_CERT_FILE", "an https address in UPSTREAM_API_URL", _uses_tls
    ),
    Need("UPSTREAM_CA_FILE", "an https address in UPSTREAM_API_URL", _uses_tls),
)
"""Settings that are not in this table always have an effect."""


def unused_warnings(settings: Settings) -> Iterator[str]:
    """Yield a line for each setting without an effect in any account."""
    accounts = settings.accounts.values()
    for need in _NEEDS:
        given = [account for account in accounts if need.is_set(account)]
        if given and not any(need.is_met(account) for account in given):
            yield f"{need.setting} has no effect: it needs {need.needs}"
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
    methods = [s.name for s in SECTIONS[ACCESS_SECTION] if s.name != "WEB_OPEN_PATHS"]
    is_protected = any(getattr(settings, name.lower()) for name in methods)
    if settings.web_open_paths and not is_protected:
        yield f"WEB_OPEN_PATHS has no effect: it needs {' or '.join(methods)}"

"""PromQL that boards share. Numbers hold however many exporters read an account."""

CHOSEN = 'cluster=~"$cluster", account=~"$account", job=~"$job", instance=~"$instance"'

PROCESS = 'cluster=~"$cluster", job=~"$job", instance=~"$instance"'
"""Selects processes: one with several accounts has metrics that belong to none."""

TARGET = "cluster, account, job, instance"
"""Labels of a target: an exporter, or one of its accounts."""


def of(metric: str, *more: str) -> str:
    """Return a selector of the chosen targets; `more` are further matchers."""
    return f"{metric}{{{', '.join([CHOSEN, *more])}}}"


def one(expression: str, *by: str) -> str:
    """Return the value of one exporter for each account, also if others read it."""
    return f"max by ({', '.join(['cluster', 'account', *by])}) ({expression})"


def any_one(info: str, by: str) -> str:
    """Return one series for each object: exporters may differ until both have read it.

    Args:
        info: series with 1 and properties of objects.
        by: the labels that identify an object.
    """
    return f"topk by ({by}) (1, {info})"


def total(expression: str, *by: str) -> str:
    """Return the sum over accounts of what differs by some labels."""
    return f"sum({one(expression, *by)})"


def or_zero(count: str, known: str) -> str:
    """Return a count, or 0 if nothing is counted while something is known."""
    return f"{count} or 0 * count({known})"


def rate(counter: str, window: str, *by: str, matchers: tuple[str, ...] = ()) -> str:
    """Return what is counted in a second, by account and some labels.

    Two exporters of one account count the same, so the higher one counts.
    """
    labels = ", ".join([TARGET, *by])
    return one(f"sum by ({labels}) (rate({of(counter, *matchers)}[{window}]))", *by)


def label(
    expression: str, name: str, value: str, source: str = "", match: str = ""
) -> str:
    """Return `label_replace`: of all series, or of those whose label matches."""
    return f'label_replace({expression}, "{name}", "{value}", "{source}", "{match}")'


def any_of(*expressions: str) -> str:
    return "\nor ".join(expressions)


_ATTENTION = "api_exporter_attention"

SILENT = f"""\
{of("up")} == 0 unless on (cluster, account) {of("up")} == 1"""
"""Targets of accounts for which no exporter answers."""

STATE = any_of(
    f"4 + ({SILENT})",
    f"""3 + ({of("netbird_api_up")} == 0
  unless on (cluster, account) {of("netbird_api_up")} == 1)""",
    f"""2 * ({of(_ATTENTION, 'severity="critical"')} > bool 0)""",
    f"""({of(_ATTENTION, 'severity="warning"')} > bool 0)""",
    f"""0.5 + ({of("api_exporter_resource_up")} == 0
  unless on (cluster, account, resource) {of("api_exporter_resource_up")} == 1)""",
)
"""The states of each target: the highest counts. `STATES` has their words."""


def findings(severity: str) -> str:
    return total(of(_ATTENTION, f'severity="{severity}"'))


_SINCE = "api_exporter_finding_since_timestamp_seconds"

_NAMED = any_of(
    of(_SINCE, 'object!=""'),
    label(of(_SINCE, 'object=""'), "object", "$1", "object_id", "(.+)"),
)

_DOWN = f"""\
(max_over_time(timestamp({of("up")} == 1)[6h:1m]) and ({SILENT})
  or time() - 6 * 3600 + ({SILENT}))"""
for _name, _value in (("finding", "ApiExporterDown"), ("severity", "critical")):
    _DOWN = label(_DOWN, _name, _value)
_DOWN = label(_DOWN, "object", "$1", "instance", "(.*)")
"""The finding that no exporter has: that it does not answer, since its last answer, or
for six hours if that is older."""

RANKS = {"1": "critical", "2": "warning", "3": "info"}


def _ranked(expression: str) -> str:
    for rank, severity in RANKS.items():
        expression = label(expression, "rank", rank, "severity", severity)
    return expression


_FOUND = f"bottomk by (cluster, account, finding, object_type, object_id) (1, {_NAMED})"

TROUBLES = f"""\
1000 * max by (
  cluster, account, instance, rank, finding, object_type, object_id, object
) ({_ranked(any_of(_FOUND, _DOWN))})"""
"""Since when findings hold, in milliseconds, by the exporter that knew them first."""


def named_accounts(expression: str) -> str:
    """Name the account of an exporter that reads one account without a name."""
    return label(expression, "account", "NetBird", "account")


_SUCCESS = of("api_exporter_resource_last_success_timestamp_seconds")

RESOURCE_AGE = f"""\
(timestamp({_SUCCESS}) - {_SUCCESS})
  / {of("api_exporter_resource_refresh_interval_seconds")}"""
"""The age of each resource at the scrape, in its own intervals: up to 1 is usual."""


def supported(expression: str) -> str:
    """Leave out resources that the NetBird API does not offer."""
    unsupported = f"{of('api_exporter_resource_supported')} == 0"
    return f"({expression}) unless on ({TARGET}, resource) {unsupported}"

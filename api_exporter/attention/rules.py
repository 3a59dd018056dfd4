"""Prometheus rules, made from the thresholds.

`api_exporter/*.in.yml` are the rules with names in place of numbers, such as
`@{days.login_soon}`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pkgutil import get_data
from string import Template

from api_exporter.attention.thresholds import Thresholds, runbook_url

HEAD = "# Made by `api-exporter --rules`, which goes by THRESHOLDS_FILE.\n"

EXPORTER_RUNBOOKS = "http://{{ $labels.instance }}/runbooks"
"""Address of the runbooks in the exporter that an alert is about."""

TARGET = "cluster, account, job, instance"
"""The labels that identify a target. Several accounts of one exporter share `instance`.
A missing label changes nothing."""

MACROS = {
    "target": TARGET,
    # Operators name a group by its name or its id.
    "named_groups": "(netbird_api_group_info or"
    ' label_replace(netbird_api_group_info, "group", "$1", "group_id", "(.+)"))',
}

SINGLE = {
    "group": ("netbird_api_group_info", "group_id"),
    "network": ("netbird_api_network_routing_peers_connected", "network_id"),
    "resource": ("netbird_api_network_resource_info", "network_resource_id"),
    "route": ("netbird_api_route_info", "network_id, network"),
}
"""Kinds of single objects: a metric of each object, and its identifying labels."""

UNLESS_OUTAGE = """\
unless on ({target}) netbird_api_up == 0
          and on ({target}, {ids}) (
            {info} unless on ({target}) instance:netbird_api_fleet_dropped:bool == 1
            or ALERTS{{alertname="{alert}", alertstate="firing"}}
          )"""
"""No alert about a single object fires while the peers cannot be read. While the whole
fleet has dropped, only alerts that already fire remain."""

GROUP = """\
      - record: instance_group:netbird_api_group_matters:info
        expr: max by ({target}) (netbird_api_group_info)
        labels: {{group: {group}, role: {role}}}
"""


SETTING_RULE = """\
      - record: instance_setting:netbird_api_account_setting_wanted:bool
        expr: 0 * max by ({target}) (netbird_api_account_setting_enabled) + {value}
        labels: {{setting: {setting}}}
"""


class _Rules(Template):
    delimiter = "@"
    idpattern = r"(?-i:[a-z][a-z_.]*)"


def all_rules(thresholds: Thresholds, runbooks: str | None) -> str:
    """Return all rules as one file.

    Args:
        runbooks: address of the runbooks; None for those of the exporter.
    """
    recording, alerts = (rules(name, thresholds, runbooks) for name in RULE_FILES)
    return HEAD + recording + alerts.partition("groups:\n")[2]


def rules(name: str, thresholds: Thresholds, runbooks: str | None = None) -> str:
    """Return one file of rules. The alerts need the recording rules.

    Args:
        name: one of RULE_FILES.
    """
    words = {
        **dict(numbers(thresholds)),
        "groups": _groups(thresholds),
        "settings": _settings(thresholds),
    }
    return fill_template(name, thresholds, words, runbooks)


RULE_FILES = ("rules", "alerts")


def fill_template(
    name: str,
    thresholds: Thresholds,
    words: Mapping[str, str],
    runbooks: str | None = None,
) -> str:
    """Return a file of rules with these words in place of the names."""
    text = (get_data("api_exporter", f"{name}.in.yml") or b"").decode()
    # Each part is one alert. Its name is the key of its severity and runbook.
    head, *parts = re.split(r"(?=- alert: )", text)
    made = [_Rules(head).substitute({**MACROS, **words})]
    for part in parts:
        alert = part.split()[2]
        own = {
            "severity": thresholds.severities[alert],
            "runbook": runbook_url(runbooks or EXPORTER_RUNBOOKS, alert),
            **{
                f"unless_outage.{single}": UNLESS_OUTAGE.format(
                    target=TARGET, info=info, ids=ids, alert=alert
                )
                for single, (info, ids) in SINGLE.items()
            },
        }
        made.append(_Rules(part).substitute({**MACROS, **words}, **own))
    return "".join(made)


def numbers(thresholds: Thresholds) -> Iterator[tuple[str, str]]:
    for table in ("hours", "days", "shares", "peers", "dollars", "requests"):
        for name, number in getattr(thresholds, table).items():
            yield f"{table}.{name}", "Inf" if number is None else str(number)


def _groups(thresholds: Thresholds) -> str:
    groups = thresholds.groups
    roles = (("important", groups.important), ("routers", groups.routers))
    made = [
        GROUP.format(target=TARGET, role=role, group=_quoted(name))
        for role, names in roles
        for name in dict.fromkeys(names)
    ]
    return "\n" + "".join(made).rstrip("\n") if made else " []"


def _settings(thresholds: Thresholds) -> str:
    made = [
        SETTING_RULE.format(target=TARGET, value=int(value), setting=_quoted(name))
        for name, value in thresholds.settings.items()
    ]
    return "\n" + "".join(made).rstrip("\n") if made else " []"


def _quoted(text: str) -> str:
    """Return a YAML string: JSON without surrogate pairs, which emoji need."""
    quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", r"\x7f")
    return quoted.encode("ascii", "backslashreplace").decode()

"""The rules that are made from `api_exporter/thresholds.json`: `python -m tests.rules`.

`deploy/prometheus/*.in.yml` are the rules with the names of numbers in place of the
numbers: `@{days.login_soon}`. What is made of them is committed; a test fails when it
is stale.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template

import msgspec

from api_exporter.attention.thresholds import Thresholds, read

ROOT = Path(__file__).parent.parent

THRESHOLDS = ROOT / "api_exporter/thresholds.json"

RULES = ROOT / "deploy/prometheus"

HEAD = """\
# Made by `make rules` from {name}.in.yml and api_exporter/thresholds.json: edit these.
"""

TARGET = "cluster, account, job, instance"
"""The labels that tell targets apart. Those of one exporter with several accounts share
`instance`; a label that nobody has changes nothing."""

MACROS = {
    "target": TARGET,
    # What single things look like says nothing while all of them look like it.
    "unless_outage": f"unless on ({TARGET})"
    " (netbird_api_up == 0 or instance:netbird_api_fleet_dropped:bool == 1)",
}

GROUP = """\
      - record: instance_group:netbird_api_group_matters:info
        expr: max by ({target}) (netbird_api_group_info)
        labels: {{group: {group}, role: {role}}}
"""


class _Rules(Template):
    delimiter = "@"
    idpattern = r"(?-i:[a-z][a-z_.]*)"


def rules(name: str, thresholds: Thresholds) -> str:
    """A file of rules.

    Args:
        name: the file's, without what follows the dot.
    """
    words = {**MACROS, **dict(_named(thresholds)), "groups": _groups(thresholds)}
    text = (RULES / f"{name}.in.yml").read_text(encoding="utf-8")
    # Each begins with its name, by which its severity and its runbook are found.
    head, *parts = re.split(r"(?=- alert: )", text)
    made = [_Rules(head).substitute(words)]
    for part in parts:
        alert = part.split(maxsplit=3)[2]
        own = {
            "severity": thresholds.severities[alert],
            "runbook": thresholds.runbook(alert),
        }
        made.append(_Rules(part).substitute(words, **own))
    return HEAD.format(name=name) + "".join(made)


def _named(thresholds: Thresholds) -> Iterator[tuple[str, str]]:
    """The numbers, each by its table and its name."""
    for table, numbers in (
        ("hours", thresholds.hours),
        ("days", thresholds.days),
        ("shares", thresholds.shares),
        ("peers", thresholds.peers),
    ):
        for name, number in numbers.items():
            yield f"{table}.{name}", str(number)


def _groups(thresholds: Thresholds) -> str:
    """A rule for each group that matters, in each of its roles."""
    groups = thresholds.groups
    roles = (("important", groups.important), ("routers", groups.routers))
    return "".join(
        GROUP.format(target=TARGET, role=role, group=json.dumps(name))
        for role, names in roles
        for name in names
    )


def _made(name: str) -> Callable[[], str]:
    return lambda: rules(name, read(THRESHOLDS.read_bytes()))


FILES = {RULES / f"{name}.yml": _made(name) for name in ("rules", "alerts")}

if __name__ == "__main__":
    try:
        texts = {path: made() for path, made in FILES.items()}
    except msgspec.DecodeError as error:
        sys.exit(f"{THRESHOLDS.name}: {error}")
    except KeyError as error:
        sys.exit(f"{THRESHOLDS.name}: {error} is missing")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")

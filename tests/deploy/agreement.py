"""A comparison of findings and alerts of the same bodies; promtool runs the alerts."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from msgspec import Struct, field

from api_exporter.attention.rules import RULE_FILES, rules
from api_exporter.attention.thresholds import Thresholds
from tests.attention.test_thresholds import OTHERS
from tests.deploy.programs import documents
from tests.deploy.queries import selectors
from tests.integration.programs import program

_SAMPLE = re.compile(r"([\w:]+)(?:\{(.*)\})? (\S+)")
_FIRING = 'count by (alertname, instance) (ALERTS{alertstate="firing"})'
_FIRED = re.compile(r'\{alertname="(\w+)", instance="([^"]*)"\} ([\d.eE+]+)')

SLACK = 1
"""Evaluations by which findings and alerts may differ, because both have delays."""


class Record(Struct):
    """The results of an account, one for each evaluation.

    Attributes:
        name: the name of the target.
        begin: the time of the first evaluation, which is Prometheus' 0.
        findings: the alerts that belong to the findings.
        series: values of each series, None where it has none.
    """

    name: str
    begin: float
    findings: list[frozenset[str]] = field(default_factory=list)
    series: dict[str, list[float | None]] = field(default_factory=dict)

    def look(self, page: str, findings: Iterable[str], wanted: frozenset[str]) -> None:
        """Add an evaluation. `wanted` are the metrics that the rules read."""
        past = len(self.findings)
        self.findings.append(frozenset(findings))
        for line in page.splitlines():
            match = _SAMPLE.fullmatch(line)
            if match and match[1] in wanted:
                own = f'{{job="api-exporter",instance="{self.name}"'
                labels = f"{own},{match[2]}}}" if match[2] else f"{own}}}"
                value = float(match[3])
                if match[1].endswith("_timestamp_seconds"):
                    value -= self.begin
                values = self.series.setdefault(f"{match[1]}{labels}", [None] * past)
                values.append(value)
        for values in self.series.values():
            if len(values) == past:
                values.append(None)


class Rules:
    """The rules for given thresholds, evaluated by promtool.

    Attributes:
        `wanted`: names of metrics that the rules read.
        waits: each alert's `for` and `keep_firing_for` in seconds.
    """

    def __init__(self, folder: str, thresholds: Thresholds) -> None:
        self._folder = Path(folder).absolute()
        self._folder.mkdir(parents=True)
        self.waits: dict[str, tuple[float, float]] = {}
        names: set[str] = set()
        for name in RULE_FILES:
            path = self._folder / f"{name}.yml"
            path.write_text(rules(name, thresholds))
            [file] = documents(path)
            for rule in (rule for group in file["groups"] for rule in group["rules"]):
                names |= {one.split("{")[0] for one in selectors(rule["expr"])}
                if "alert" in rule:
                    held = (rule.get("for", "0s"), rule.get("keep_firing_for", "0s"))
                    self.waits[rule["alert"]] = (_seconds(held[0]), _seconds(held[1]))
        self.wanted = frozenset(names)

    def fired(
        self, records: Sequence[Record], step: int
    ) -> Mapping[str, list[Counter[str]]]:
        """Return the number of firing alerts of each name, by target and evaluation."""
        looks = max(len(record.findings) for record in records)
        series = [
            {"series": name, "values": " ".join(_written(values))}
            for record in records
            for name, values in record.series.items()
        ]
        test = {
            "rule_files": [f"{name}.yml" for name in RULE_FILES],
            "evaluation_interval": f"{step}s",
            "tests": [
                {
                    "interval": f"{step}s",
                    "input_series": series,
                    "promql_expr_test": [
                        {"expr": _FIRING, "eval_time": f"{look * step}s"}
                        for look in range(looks)
                    ],
                }
            ],
        }
        (self._folder / "test.yml").write_text(json.dumps(test))
        told = subprocess.run(
            [program("promtool"), "test", "rules", "test.yml"],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        said = told.stdout + told.stderr
        assert not told.returncode or "FAILED:\n    expr" in said, said[:2000]
        found: dict[str, list[Counter[str]]] = {
            record.name: [Counter() for _ in record.findings] for record in records
        }
        look = 0
        for line in said.splitlines():
            if match := re.search(r"firing.*time: (\w+),", line):
                look = int(_seconds(match[1])) // step
            for alert, target, count in _FIRED.findall(line):
                if look < len(found[target]):
                    found[target][look][alert] = int(float(count))
        return found


def contradictions(
    record: Record,
    fired: Sequence[Mapping[str, int]],
    waits: Mapping[str, tuple[float, float]],
    step: int,
) -> Iterator[str]:
    """Yield findings without an alert, and alerts without a finding."""
    for alert in sorted(set(waits) - OTHERS):
        wait, keep = waits[alert]
        found = [alert in findings for findings in record.findings]
        for look, alerts in enumerate(fired):
            since = look - int(wait / step) - SLACK
            lately = max(0, look - int(keep / step) - SLACK)
            if alert not in alerts and since >= 0 and all(found[since : look + 1]):
                yield f"{record.name}, look {look}: a finding, no {alert}"
                break
            if alert in alerts and not any(found[lately : look + 1]):
                yield f"{record.name}, look {look}: {alert}, no finding"
                break


def _written(values: Iterable[float | None]) -> Iterator[str]:
    """Yield values in promtool's notation. A series that ends is stale at once."""
    before: float | None = None
    for value, run in groupby(values):
        more = len(list(run)) - 1
        if value is not None:
            yield f"{value:.15g}+0x{more}"
        else:
            yield "_" if before is None else "stale"
            yield from ["_"] * more
        before = value


def _seconds(text: str) -> float:
    """Return the seconds of a duration such as 1h30m."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    return sum(float(n) * units[u] for n, u in re.findall(r"([\d.]+)([smhdw])", text))

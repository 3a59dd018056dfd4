"""The PromQL of `deploy/`: its expressions, and the metrics that they select."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.deploy.programs import DEPLOY, documents

DASHBOARDS = sorted((DEPLOY / "grafana/dashboards").glob("*.json"))

VARIABLES = {
    "$cluster": ".*",
    "$account": ".*",
    "$job": ".+",
    "$instance": ".+",
    "$peer": ".+",
    "$service": ".+",
    "$__rate_interval": "1m",
}
"""Values that replace Grafana's variables."""

SELECTOR = re.compile(
    r"\b(?:up|(?:netbird_api|api_exporter|process|python|scrape)_\w+"
    r"|instance(?:_resource)?:[\w:]+)\b(?:\{[^}]*\})?"
)


def rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of all groups of a file."""
    [file] = documents(DEPLOY / "prometheus" / name)
    return [rule for group in file["groups"] for rule in group["rules"]]


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def panels(path: Path) -> list[dict[str, Any]]:
    """Return all panels except rows."""
    return [p for p in dashboard(path)["panels"] if p["type"] != "row"]


def panel_queries(*, filled: bool = True) -> Iterator[tuple[str, str]]:
    """Yield each panel and its expression, by default as Grafana sends it."""
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                written = target["expr"]
                text = _filled(written) if filled else written
                yield f"{path.stem}: {panel['title']}", text


def mark_queries() -> Iterator[tuple[str, str]]:
    """Yield each annotation and its expression."""
    for path in DASHBOARDS:
        for mark in dashboard(path)["annotations"]["list"]:
            yield f"{path.stem}: {mark['name']}", _filled(mark["expr"])


def variable_queries() -> Iterator[tuple[str, str]]:
    """Yield each variable and the series of its values."""
    for path in DASHBOARDS:
        for variable in dashboard(path)["templating"]["list"]:
            if variable["type"] == "query":
                asked = _filled(variable["query"]["query"])
                series = re.sub(r"^\w+\((.*?)(?:, \w+)?\)$", r"\1", asked)
                yield f"{path.stem}: {variable['name']}", series


def _filled(expression: str) -> str:
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def selectors(expression: str) -> list[str]:
    return SELECTOR.findall(expression)

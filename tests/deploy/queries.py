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
    "$__range": "1h",
    "offset 1h": "offset 5s",
}
"""Values that replace Grafana's variables, and an hour that a test does not have."""

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
    """Return all panels with those of closed rows, but no rows."""
    found = [p for p in dashboard(path)["panels"] for p in (p, *p.get("panels", ()))]
    return [panel for panel in found if panel["type"] != "row"]


def panel_queries(*, filled: bool = True) -> Iterator[tuple[str, str]]:
    """Yield each panel and its expression, by default as Grafana sends it."""
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                written = target["expr"]
                text = fill(written) if filled else written
                yield f"{path.stem}: {panel['title']}", text


def board_query(path: Path, title: str) -> str:
    """Return the first expression of a panel, as Grafana sends it."""
    [found] = [panel for panel in panels(path) if panel["title"] == title]
    return fill(found["targets"][0]["expr"])


def mark_queries() -> Iterator[tuple[str, str]]:
    """Yield each annotation and its expression."""
    for path in DASHBOARDS:
        for mark in dashboard(path)["annotations"]["list"]:
            yield f"{path.stem}: {mark['name']}", fill(mark["expr"])


def variable_queries() -> Iterator[tuple[str, str]]:
    """Yield each variable and the series of its values."""
    for path in DASHBOARDS:
        for variable in dashboard(path)["templating"]["list"]:
            if variable["type"] == "query":
                asked = fill(variable["query"])
                series = re.sub(
                    r"^\w+\((.*?)(?:, \w+)?\)$", r"\1", asked, flags=re.DOTALL
                )
                yield f"{path.stem}: {variable['name']}", series


def fill(expression: str, **chosen: str) -> str:
    """Return an expression as Grafana sends it, with some variables of a test."""
    values = VARIABLES | {f"${name}": value for name, value in chosen.items()}
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    return expression


def selectors(expression: str) -> list[str]:
    return SELECTOR.findall(expression)

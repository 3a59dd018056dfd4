"""Write copies of the dashboards for grafana.com: `dashboards.py OUT`.

A copy asks for its data source (`__inputs`) and names what it needs (`__requires`).
The files of `deploy/grafana` do not, so that Grafana can provision them as they are.
"""

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "grafana/dashboards"

GRAFANA = "10.4.0"
"""The oldest Grafana with the `schemaVersion` of the dashboards, 39."""

_INPUT = {
    "name": "DS_PROMETHEUS",
    "label": "Prometheus",
    "description": "",
    "type": "datasource",
    "pluginId": "prometheus",
    "pluginName": "Prometheus",
}


def every_panel(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all panels with those of closed rows."""
    return [p for row in dashboard["panels"] for p in (row, *row.get("panels", ()))]


def published(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Return the copy, whose variable `datasource` has the value of the input."""
    first, *others = dashboard["templating"]["list"]
    value = f"${{{_INPUT['name']}}}"
    chosen = {**first, "current": {"text": value, "value": value}}
    needed = [
        ("grafana", "grafana", "Grafana", GRAFANA),
        ("datasource", "prometheus", "Prometheus", "1.0.0"),
        *(
            ("panel", t, t, "")
            for t in sorted({p["type"] for p in every_panel(dashboard)})
        ),
    ]
    keys = ("type", "id", "name", "version")
    return {
        "__inputs": [_INPUT],
        "__elements": {},
        "__requires": [dict(zip(keys, one, strict=True)) for one in needed],
        "id": None,
        **dashboard,
        "templating": {"list": [chosen, *others]},
    }


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.glob("*.json")):
        copy = published(json.loads(path.read_text(encoding="utf-8")))
        text = json.dumps(copy, indent=2, ensure_ascii=False)
        (out / path.name).write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The committed rules: `python -m tests.prometheus` writes them.

The files in `deploy/prometheus` are for users without a running exporter. They have
the default thresholds; a test fails if they are stale. A new alert becomes a warning in
`thresholds.json`; another severity is set there.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from api_exporter.attention.rules import RULE_FILES, rules
from api_exporter.attention.thresholds import default_thresholds

ROOT = Path(__file__).parent.parent

SOURCE = ROOT / "api_exporter"

THRESHOLDS = SOURCE / "thresholds.json"

RULES = ROOT / "deploy/prometheus"

HEAD = """\
# Made by `make rules` from api_exporter/{name}.in.yml and thresholds.json there.
"""


def _made(name: str) -> Callable[[], str]:
    return lambda: HEAD.format(name=name) + rules(name, default_thresholds())


FILES = {RULES / f"{name}.yml": _made(name) for name in RULE_FILES}


def add_severities() -> None:
    """Write one severity for each alert into `thresholds.json`, in their order."""
    thresholds = json.loads(THRESHOLDS.read_text(encoding="utf-8"))
    text = (SOURCE / "alerts.in.yml").read_text(encoding="utf-8")
    known = thresholds["severities"]
    alerts = re.findall(r"- alert: (\w+)", text)
    thresholds["severities"] = {x: known.get(x, "warning") for x in alerts}
    made = json.dumps(thresholds, indent=2, ensure_ascii=False) + "\n"
    THRESHOLDS.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    add_severities()
    for path, made in FILES.items():
        path.write_text(made(), encoding="utf-8")

"""The committed rules: `python -m tests.prometheus` writes them.

The files in `deploy/prometheus` are for users without a running exporter. They have
the default thresholds; a test fails if they are stale.
"""

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

if __name__ == "__main__":
    for path, made in FILES.items():
        path.write_text(made(), encoding="utf-8")

"""`docs/correctness.md`, made of what the runs wrote into `docs/correctness.json`."""

import json
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs/correctness.json"

Results = dict[str, dict[str, dict[str, float]]]


def results() -> Results:
    """What was measured, by kind of run, and by subject."""
    found: Results = json.loads(RESULTS.read_text())
    return found


def add(kind: str, subject: str, **figures: float) -> None:
    """Add what a run has done to what was done before."""
    found = results()
    before = found.setdefault(kind, {}).setdefault(subject, {})
    for name, figure in figures.items():
        before[name] = round(before.get(name, 0) + figure, 1)
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def put(kind: str, subject: str, **figures: float) -> None:
    """Write what a run has found in place of what was found before."""
    found = results()
    found.setdefault(kind, {})[subject] = figures
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")

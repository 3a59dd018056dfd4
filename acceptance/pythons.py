"""The fast tests with other Pythons, and with the oldest dependencies."""

import re
from pathlib import Path

from acceptance.check import Failed, run

MAX_SECONDS = 7200.0
"""Seconds. The tests run once for each Python."""

_RESULT = re.compile(r"^(Python .*|no Python .*|PASSED .*)$", re.MULTILINE)


def pythons(_folder: Path) -> str:
    """Test with every supported Python that is installed here."""
    return _run_goal("pythons")


def lowest(_folder: Path) -> str:
    """Test with exactly the lower bounds of setup.cfg."""
    return _run_goal("lowest")


def _run_goal(goal: str) -> str:
    results = _RESULT.findall(run("make", goal, limit=MAX_SECONDS))
    if not any(line.startswith("PASSED") for line in results):
        raise Failed("no test passed")
    return "\n".join(results)

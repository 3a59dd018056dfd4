"""The fast tests with other Pythons, and with the oldest dependencies."""

import re
from pathlib import Path

from acceptance.check import Failed, run

LIMIT = 7200.0
"""Seconds. The tests run once for each Python."""

_TOLD = re.compile(r"^(Python .*|no Python .*|PASSED .*)$", re.MULTILINE)


def pythons(_folder: Path) -> str:
    """Test with every supported Python that is installed here."""
    return _told("pythons")


def lowest(_folder: Path) -> str:
    """Test with exactly the lower bounds of setup.cfg."""
    return _told("lowest")


def _told(goal: str) -> str:
    told = _TOLD.findall(run("make", goal, limit=LIMIT))
    if not any(line.startswith("PASSED") for line in told):
        raise Failed("no test passed")
    return "\n".join(told)

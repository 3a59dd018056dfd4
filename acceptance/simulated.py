"""A simulated month of the whole program with a new seed."""

import re
import sys
from pathlib import Path

from acceptance.check import ROOT, Failed, run

DAYS = 30
LIMIT = 7200.0
"""Seconds. A day takes up to 30 seconds of processor time."""


def month(_folder: Path) -> str:
    """Check that no invariant is violated. Return the line with the seed."""
    command = (sys.executable, "-m", "simulation", "--days", str(DAYS))
    told = run(*command, cwd=ROOT, limit=LIMIT)
    found = re.search(r"^seed \d+: .* days, \d+ steps", told, re.MULTILINE)
    if found is None:
        raise Failed("nothing was simulated")
    return found[0]

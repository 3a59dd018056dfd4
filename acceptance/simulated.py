"""A simulated month of the whole program with a new seed."""

import re
import sys
from pathlib import Path

from acceptance.check import ROOT, Failed, run

DAYS = 30
MAX_SECONDS = 7200.0
"""Seconds. A day takes up to 30 seconds of processor time."""


def month(_folder: Path) -> str:
    """Check that no invariant is violated. Return the line with the seed."""
    command = (sys.executable, "-m", "simulation", "--days", str(DAYS))
    output = run(*command, cwd=ROOT, limit=MAX_SECONDS)
    found = re.search(r"^seed \d+: .* days, \d+ steps", output, re.MULTILINE)
    if found is None:
        raise Failed("nothing was simulated")
    return found[0]

"""A simulated month of the whole program, of a fresh seed."""

import re
import sys
from pathlib import Path

from acceptance.check import ROOT, Failed, run

DAYS = 30
LIMIT = 7200.0
"""Seconds: a day takes half a minute of a processor, or less."""


def month(_folder: Path) -> str:
    """No invariant is broken; the seed is named."""
    command = (sys.executable, "-m", "simulation", "--days", str(DAYS))
    told = run(*command, cwd=ROOT, limit=LIMIT)
    found = re.search(r"^seed \d+: .* days, \d+ steps", told, re.MULTILINE)
    if found is None:
        raise Failed("nothing was simulated")
    return found[0]

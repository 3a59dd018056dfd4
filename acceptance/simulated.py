"""A simulated month of the whole program with new seeds, and calls that fail."""

import re
import sys
from pathlib import Path
from random import SystemRandom

from acceptance.check import ROOT, Failed, run

SEEDS = 10
DAYS = 3
MAX_SECONDS = 7200.0
"""Seconds. A day takes up to 30 seconds of processor time."""


def month(_folder: Path) -> str:
    """Check that no invariant is violated and no probe missed. Return the seeds."""
    first = SystemRandom().randrange(10**9)
    seeds = f"{first}-{first + SEEDS - 1}"
    command = (sys.executable, "-m", "simulation", "--probes", "--seeds", seeds)
    output = run(*command, "--days", str(DAYS), cwd=ROOT, limit=MAX_SECONDS)
    if len(re.findall(r"^seed \d+: .* days, \d+ steps", output, re.MULTILINE)) < SEEDS:
        raise Failed("nothing was simulated")
    return f"seeds {seeds}, {DAYS} days each"


def torture(_folder: Path) -> str:
    """Check that the exporter survives each call that fails. Return the counts."""
    command = (sys.executable, "-m", "simulation.torture")
    return run(*command, cwd=ROOT, limit=MAX_SECONDS).splitlines()[-1]

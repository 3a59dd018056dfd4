"""All examples, and bounds in seconds, one test at a time."""

import os
import re
import sys
from pathlib import Path

from acceptance.check import ROOT, Failed, run

LIMIT = 7200.0
"""Seconds: days are simulated."""


def thorough(folder: Path) -> str:
    """Every test, as it is tried where nothing else is at work."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = (sys.executable, "-m", "twisted.trial", f"--temp-directory={folder}/t")
    env = {"THOROUGH": "1", "PATH": path}
    told = run(*command, "tests", cwd=ROOT, env=env, limit=LIMIT)
    found = re.search(r"^PASSED .*$", told, re.MULTILINE)
    if found is None:
        raise Failed("no test passed")
    return found[0]

"""All examples, and bounds in seconds, one test at a time.

What neither has, the gate runs just so.
"""

import os
import re
import sys
from pathlib import Path

from acceptance.check import ROOT, Failed, run

LIMIT = 7200.0
"""Seconds: days are simulated."""

_MORE = re.compile(r"\b(SOON|THOROUGH|tries\()")
"""What a module uses whose tests are more where the run is thorough."""


def thorough(folder: Path) -> str:
    """Every test that is more then, as it is tried where nothing else is at work."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"THOROUGH": "1", "PATH": path}
    programs = sorted((ROOT / "tests/integration").glob("test_*.py"))
    timed = [
        f"tests.integration.{file.stem}"
        for file in programs
        if _MORE.search(file.read_text())
    ]
    trial = (sys.executable, "-m", "twisted.trial", f"--temp-directory={folder}/t")
    told = [
        run("make", "units", env=env, limit=LIMIT),
        run(*trial, *timed, cwd=ROOT, env=env, limit=LIMIT),
    ]
    passed = [re.search(r"^PASSED .*$", text, re.MULTILINE) for text in told]
    if None in passed:
        raise Failed("no test passed")
    return ", ".join(found[0] for found in passed if found)

"""All examples, and limits in seconds, one test at a time.

The gate already runs all other tests in the same way.
"""

import os
import re
import sys
from pathlib import Path

from acceptance.check import ROOT, Failed, run, run_tests

MAX_SECONDS = 7200.0
"""Seconds. The tests simulate days."""

_THOROUGH = re.compile(r"\b(SOON|THOROUGH|assert_stops|tries\()")
"""A name in modules whose tests do more in a thorough run."""


def thorough(folder: Path) -> str:
    """Run every test that does more in a thorough run, with nothing else running."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"THOROUGH": "1", "PATH": path}
    programs = sorted((ROOT / "tests/integration").glob("test_*.py"))
    timed = [
        f"tests.integration.{file.stem}"
        for file in programs
        if _THOROUGH.search(file.read_text())
    ]
    outputs = [
        run("make", "units", env=env, limit=MAX_SECONDS),
        run_tests(*timed, folder=folder, env=env, limit=MAX_SECONDS),
    ]
    passed = [re.search(r"^PASSED .*$", text, re.MULTILINE) for text in outputs]
    if None in passed:
        raise Failed("no test passed")
    return ", ".join(found[0] for found in passed if found)

"""The tests in other surroundings: Pythons, dependencies, Prometheus, limits, seeds."""

import os
import re
import sys
from pathlib import Path
from random import SystemRandom

from checks.acceptance.check import ROOT, Failed, go_tool, run, run_tests
from tests.bodies import inventory
from tests.collectors.samples import page

MAX_SECONDS = 7200.0
"""Seconds. The tests and the simulation run for days of simulated time."""

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


VERSION = "3.16.0"

_PROMETHEUS = "github.com/prometheus/prometheus"

# Service discovery by files and HTTP is enough, and needs no vendor's library.
_BUILD = (
    "-tags=remove_all_sd",
    f"-ldflags=-X github.com/prometheus/common/version.Version={VERSION}",
)

TESTS = (
    "tests.deploy.test_prometheus",
    "tests.deploy.test_unix_socket",
    "tests.deploy.test_monitoring_netbird",
    "tests.integration.test_doors",
    "tests.integration.test_prometheus",
    "tests.integration.test_service_discovery",
    "tests.test_golden",
)
"""The tests that run Prometheus or promtool."""


def prometheus(folder: Path) -> str:
    """Check that all tests with Prometheus pass with it, and none is skipped."""
    for name in ("prometheus", "promtool"):
        # Its Go modules are numbered v0.3xx: 3.16.0 is v0.316.0.
        version = f"v0.{VERSION.replace('.', '', 1)}"
        tool = go_tool(_PROMETHEUS, version, f"cmd/{name}", *_BUILD)
        (folder / name).symlink_to(tool)
    said = run(folder / "prometheus", "--version").splitlines()[0]
    if VERSION not in said:
        raise Failed(said)
    golden = folder / "page.txt"
    golden.write_text(page(inventory()))
    run("sh", "-c", f"{folder}/promtool check metrics --extended <{golden}")
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    told = run_tests(*TESTS, folder=folder, env=path)
    counts = told.splitlines()[-1]
    if re.search(r"skips", counts):
        raise Failed(told)
    return f"{said.partition(' (')[0]}: {counts.lower()}"


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


SEEDS = 10
DAYS = 3


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

"""Linters for the rules and dashboards."""

import subprocess
from pathlib import Path

from acceptance.check import ROOT, Failed, go_module, go_tool

RULES = ("rules.yml", "alerts.yml")


def pint(_folder: Path) -> str:
    """Check that pint has no finding."""
    tool = go_module("github.com/cloudflare/pint", "v0.60.0", "cmd/pint")
    files = [ROOT / "deploy/prometheus" / name for name in RULES]
    level = ("--min-severity", "info", "--fail-on", "info")
    _run_linter(tool, "--offline", "--no-color", "lint", *level, *files)
    return f"no finding in {' and '.join(RULES)}"


def dashboards(_folder: Path) -> str:
    """Check that the linter has no finding that `.lint` does not explain."""
    tool = go_tool("github.com/grafana/dashboard-linter", "v0.1.1")
    folder = ROOT / "deploy/grafana/dashboards"
    found = sorted(folder.glob("*.json"))
    for path in found:
        _run_linter(tool, "lint", "--strict", "--config", folder / ".lint", path)
    return f"no finding in {len(found)} dashboards"


def _run_linter(*command: str | Path) -> None:
    """Run a linter that reports findings by its exit status."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stdout + done.stderr)

"""Linters for the rules and dashboards."""

from pathlib import Path

from acceptance.check import ROOT, go_module, go_tool, run

RULES = ("rules.yml", "alerts.yml")


def pint(_folder: Path) -> str:
    """Check that pint has no finding."""
    tool = go_module("github.com/cloudflare/pint", "v0.60.0", "cmd/pint")
    files = [ROOT / "deploy/prometheus" / name for name in RULES]
    level = ("--min-severity", "info", "--fail-on", "info")
    run(tool, "--offline", "--no-color", "lint", *level, *files)
    return f"no finding in {' and '.join(RULES)}"


def dashboards(_folder: Path) -> str:
    """Check that the linter has no finding that `.lint` does not explain."""
    tool = go_tool("github.com/grafana/dashboard-linter", "v0.1.1")
    folder = ROOT / "deploy/grafana/dashboards"
    found = sorted(folder.glob("*.json"))
    for path in found:
        run(tool, "lint", "--strict", "--config", folder / ".lint", path)
    return f"no finding in {len(found)} dashboards"

"""The workflows for a public forge."""

from pathlib import Path

from acceptance.check import ROOT, go_tool, run

_ACTIONLINT = ("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12")


def actionlint(_folder: Path) -> str:
    """Check that actionlint has no finding, the scripts in the workflows included."""
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run(go_tool(*_ACTIONLINT), "-no-color", *files)
    return ", ".join(path.name for path in files)

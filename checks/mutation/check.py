"""The checks of the gate that may refuse a mutant: types, and what ruff finds."""

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from checks.mutation import child


@cache
def _copy() -> tempfile.TemporaryDirectory[str]:
    """Return a copy of the package, which stays until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="mutation-")
    shutil.copytree(child.ROOT / "api_exporter", Path(folder.name) / "api_exporter")
    shutil.copy(child.ROOT / "pyproject.toml", folder.name)
    return folder


def is_refused(path: Path, source: str) -> bool:
    folder = _copy().name
    changed = Path(folder) / path.relative_to(child.ROOT)
    before = changed.read_text()
    changed.write_text(source)
    commands = (
        ["ruff", "check", "--extend-ignore=E501,UP034", str(changed)],
        ["mypy", "-p", "api_exporter"],
    )
    try:
        return any(
            subprocess.run(
                [sys.executable, "-m", *command],
                check=False,
                cwd=folder,
                capture_output=True,
            ).returncode
            for command in commands
        )
    finally:
        changed.write_text(before)

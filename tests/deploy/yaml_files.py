"""YAML as Python sees it, read by yq: no library of ours for the tests alone."""

import json
from pathlib import Path
from typing import Any

from tests.deploy.programs import run
from tests.integration.programs import program


def documents(path: Path) -> list[Any]:
    """All documents of a file."""
    found: list[Any] = json.loads(run(program("yq"), "--slurp", ".", path))
    return found

"""YAML as Python sees it, read by yq: no library of ours for the tests alone."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.deploy.programs import run
from tests.integration.programs import program


@cache
def documents(path: Path) -> list[Any]:
    """All documents of a file, which does not change; nor may they be changed."""
    found: list[Any] = json.loads(run(program("yq"), "--slurp", ".", path))
    return found

"""YAML as Python values, read by yq, so that the tests need no YAML library."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.deploy.programs import run
from tests.integration.programs import program


@cache
def documents(path: Path) -> list[Any]:
    """Return all documents of a file: a cached value, not to be changed."""
    found: list[Any] = json.loads(run(program("yq"), "--slurp", ".", path))
    return found

"""A module for each subject: a function of its name, and RECORDS, if it reads any."""

from importlib import import_module
from pathlib import Path

MODULES = {
    path.stem: import_module(f"{__name__}.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py"))
}

"""Probes that count how often rare lines of the exporter run.

`probes.txt` names each line by a text that stands once in its file. Modules are
compiled with a call before these lines; nothing else changes.
"""

import ast
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).parents[1]
CALL = "from simulation.probes import COUNTS as _; _[{!r}] += 1"

COUNTS = Counter[str]()
"""The number of times that each line was reached."""


class Probe(Struct, frozen=True):
    """A line of a module below `api_exporter`."""

    name: str
    file: str
    text: str

    @property
    def module(self) -> str:
        return f"api_exporter.{self.file.replace('/', '.')}"


PROBES = tuple(
    Probe(*line.split(" | ", 2))
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines()
)


def probed(path: Path, probes: Sequence[Probe]) -> ast.Module:
    """Return a module with its probes. Raise ValueError if a text is not one line."""
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    found = Counter[str]()
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            statements: Any = getattr(node, field, [])
            if not isinstance(statements, list):  # the body of a lambda
                continue
            for statement in [*statements]:
                for probe in probes:
                    if probe.text in lines[statement.lineno - 1]:
                        found[probe.name] += 1
                        call = ast.parse(CALL.format(probe.name)).body
                        for one in (each for new in call for each in ast.walk(new)):
                            ast.copy_location(one, statement)
                        at = statements.index(statement)
                        statements[at:at] = call
    for probe in probes:
        if source.count(probe.text) != 1 or found[probe.name] != 1:
            raise ValueError(f"no single statement {probe.text!r} in {path}")
    return tree


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        probes = [probe for probe in PROBES if probe.module == fullname]
        path = self.get_filename(fullname)
        return compile(probed(Path(path), probes), path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    modules = frozenset(probe.module for probe in PROBES)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: object = None
    ) -> ModuleSpec | None:
        if fullname not in self.modules:
            return None
        spec = PathFinder.find_spec(fullname, path)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Count from now on. Modules that are imported already have no probes."""
    sys.meta_path.insert(0, _Finder())


def missed(counts: Counter[str]) -> list[str]:
    return [probe.name for probe in PROBES if not counts[probe.name]]

"""Modules import each other in one direction."""

import ast
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tools.documents import ROOT


def parsed(path: Path) -> tuple[str, ast.Module]:
    """A module's name and its code."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__"), ast.parse(path.read_text("utf-8"))


def imports(module: ast.Module, modules: Set[str]) -> set[str]:
    """Yield the imports of a module, also those in functions and for types."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in modules else node.module for name in names}
    return found & modules


def cycle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Return a cycle of modules, each of which is imported by the next."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


class ImportTests(SynchronousTestCase):
    def test_no_cycle(self) -> None:
        """No module imports itself through others, not even for a type."""
        modules = dict(map(parsed, (ROOT / "api_exporter").rglob("*.py")))
        graph = {name: imports(code, modules.keys()) for name, code in modules.items()}
        self.assertEqual([], cycle(graph))

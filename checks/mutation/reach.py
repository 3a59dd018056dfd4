"""Find the tests that run each block of the package: only they can notice a mistake."""

import ast
import builtins
import importlib.abc
import importlib.util
import json
import os
import sys
import time
import unittest
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from checks.mutation import child

_PACKAGE = child.ROOT / "api_exporter"


Tests = dict[str, tuple[float, list[str]]]
"""The seconds and the blocks of each test that passes without a mistake."""


def block(path: Path, line: int) -> str:
    """Return the innermost block of a function with this line; "" outside of them."""
    inner = ""
    for name, statements in _blocks(path, ast.parse(path.read_bytes())):
        if statements[0].lineno <= line <= (statements[-1].end_lineno or 0):
            inner = name
    return inner


def _blocks(
    path: Path, node: ast.AST, *, inside: bool = False
) -> list[tuple[str, list[ast.stmt]]]:
    """Return the statements of each block inside functions, the outer ones first.

    What is computed once for all tests is left out: only the first test runs it.
    """
    found = []
    is_function = isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef
    ) and "cache" not in map(ast.unparse, node.decorator_list)
    for part in ("body", "orelse", "finalbody"):
        statements = getattr(node, part, None)
        if (inside or is_function) and isinstance(statements, list) and statements:
            place = f"{path.relative_to(_PACKAGE)}:{statements[0].lineno}"
            found.append((place, statements))
    for below in ast.iter_child_nodes(node):
        found += _blocks(path, below, inside=inside or is_function)
    return found


class _Loader(SourceFileLoader):
    """A loader that marks the begin of each block."""

    def get_code(self, fullname: str) -> CodeType:
        return _marked(Path(self.get_filename(fullname)))


@cache
def _marked(path: Path) -> CodeType:
    tree = ast.parse(path.read_bytes())
    for name, statements in _blocks(path, tree):
        mark = ast.parse(f"_reached.add({name!r})").body[0]
        first = statements[0]
        has_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        statements.insert(int(has_text), ast.copy_location(mark, first))
    return compile(ast.fix_missing_locations(tree), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "api_exporter":
            return None
        folder = Path(path[0] if path else child.ROOT)
        file = folder / fullname.rpartition(".")[2]
        is_package = file.is_dir()
        file = file / "__init__.py" if is_package else file.with_suffix(".py")
        if not file.exists():
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            file,
            loader=_Loader(fullname, str(file)),
            submodule_search_locations=[str(file.parent)] if is_package else None,
        )


class _Result(child.Result):
    """A result that keeps what each passed test has reached."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Tests = {}
        self._began = 0.0
        self.blocks: set[str] = set()
        builtins._reached = self.blocks  # type: ignore[attr-defined]

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's
        super().startTest(test)
        self.blocks.clear()
        self._began = time.process_time()

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - the same
        seconds = round(time.process_time() - self._began, 3)
        self.found[test.id()] = seconds, sorted(self.blocks)


def reached(module: str) -> Tests:
    """Return the tests of a module, and under "" what its import reaches."""
    for path in _PACKAGE.rglob("*.py"):  # once for all children
        _marked(path)
    read, write = os.pipe()
    process = os.fork()
    if not process:
        try:
            with child.prepared(), os.fdopen(write, "w") as out:
                sys.meta_path.insert(0, _Finder())
                result = _Result()
                tests = child.suite([module])
                result.found[""] = 0.0, sorted(result.blocks)
                tests.run(result)
                json.dump(result.found, out)
            os._exit(0)
        finally:
            os._exit(2)
    os.close(write)
    with os.fdopen(read) as found:
        text = found.read()
    os.waitpid(process, 0)
    return json.loads(text or "{}")  # type: ignore[no-any-return]

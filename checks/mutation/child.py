"""A process for each mutant, forked from one that has imported all libraries."""

import importlib.abc
import importlib.util
import os
import signal
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from hypothesis import Phase, settings

ROOT = Path(__file__).parents[2]

MAX_TEST_SECONDS = 30
"""Processor seconds after which a test counts as hanging, which kills the mutant."""

MAX_WAIT_SECONDS = 150
"""Seconds after which a test that waits counts as hanging, too."""

PROJECT = {"api_exporter", "checks", "simulation", "tests", "tools"}


class Finder(importlib.abc.MetaPathFinder):
    """A finder that imports the mutant instead of the original module."""

    def __init__(self, module: str, file: Path) -> None:
        self._module = module
        self._file = file

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol's
        target: ModuleType | None = None,  # noqa: ARG002 - the same
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._file)


class Result(unittest.TestResult):
    """A result that ends the process if a test hangs."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's
        signal.setitimer(signal.ITIMER_PROF, MAX_TEST_SECONDS)
        signal.alarm(MAX_WAIT_SECONDS)
        super().startTest(test)


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def load() -> None:
    """Import all modules of the tests, then forget the project's own."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        importlib.import_module(dotted(path))
    for name in [*sys.modules]:
        if name.partition(".")[0] in PROJECT:
            del sys.modules[name]


def passed(path: Path, source: str, tests: Iterable[str]) -> bool:
    """Return whether these tests pass with this source of a module."""
    child = os.fork()
    if not child:
        try:
            os._exit(not _run(path, source, tests))
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def _run(path: Path, source: str, tests: Iterable[str]) -> bool:
    with prepared() as folder:
        file = folder / "mutant.py"
        file.write_text(source)
        sys.meta_path.insert(0, Finder(dotted(path), file))
        signal.setitimer(signal.ITIMER_PROF, MAX_TEST_SECONDS)  # an import may hang
        importlib.import_module("tests")  # its profile
        parent = settings.get_profile("api-exporter")
        phases = (Phase.explicit, Phase.generate)  # the first failure is enough
        settings.register_profile("mutation", parent, phases=phases, database=None)
        settings.load_profile("mutation")
        result = Result()
        result.failfast = True
        suite(tests).run(result)
    return result.wasSuccessful()


def suite(tests: Iterable[str]) -> unittest.TestSuite:
    """Import modules, classes or methods, and return their tests."""
    return unittest.defaultTestLoader.loadTestsFromNames([*tests])


@contextmanager
def prepared() -> Iterator[Path]:
    """Prepare a child for tests: no output, and a folder of its own."""
    # Python 3.11 and 3.12 keep the number of the parent's thread.
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        os.chdir(folder)
        yield Path(folder)

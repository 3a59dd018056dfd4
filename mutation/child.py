"""Runs tests with a module replaced: `python -m mutation.child MODULE FILE TESTS…`."""

import importlib.abc
import importlib.util
import resource
import sys
import unittest
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from hypothesis import Phase, settings

LONGEST = 90
"""Seconds of a processor, after which the tests hang: they notice that way."""


class Finder(importlib.abc.MetaPathFinder):
    """Finds the module with the mistake in place of the right one."""

    def __init__(self, module: str, file: str) -> None:
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


def main() -> None:
    module, file, *names = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    sys.meta_path.insert(0, Finder(module, file))
    importlib.import_module("tests")
    parent = settings.get_profile("api-exporter")
    phases = (Phase.explicit, Phase.generate)  # the first failure is enough
    settings.register_profile("mutation", parent, phases=phases, database=None)
    settings.load_profile("mutation")
    for name in names:
        suite = unittest.defaultTestLoader.loadTestsFromName(name)
        with Path("output").open("w") as output:
            runner = unittest.TextTestRunner(output, failfast=True)
            if not runner.run(suite).wasSuccessful():
                sys.exit(1)


if __name__ == "__main__":
    main()

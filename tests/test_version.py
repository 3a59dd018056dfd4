"""The version of the build."""

import sys
from types import ModuleType

from twisted.trial.unittest import SynchronousTestCase

from api_exporter._version import __version__
from api_exporter.version import Build, this_build

EMBEDDED = "embedded_for_a_test"


class BuildTests(SynchronousTestCase):
    def test_printed(self) -> None:
        """The known facts of a build are printed after the program's name."""
        at = "2026-08-22T19:10:00Z"
        for build, printed in (
            (Build(version="1.2.3"), "api-exporter 1.2.3"),
            (Build(version="1.2.3", commit="abc"), "api-exporter 1.2.3 abc"),
            (
                Build(version="1.2.3", commit="abc", built=at),
                f"api-exporter 1.2.3 abc {at}",
            ),
        ):
            self.assertEqual(printed, str(build))

    def test_embedded(self) -> None:
        """The version is incremental's; an embedded module has commit and time."""
        version = __version__.public()
        self.assertEqual(version, this_build().version)
        self.assertEqual(Build(version=version), this_build(EMBEDDED))
        module = ModuleType(EMBEDDED)
        vars(module).update(COMMIT="abc", BUILT="2026-08-22T19:10:00Z")
        sys.modules[EMBEDDED] = module
        self.addCleanup(sys.modules.pop, EMBEDDED)
        expected = Build(version=version, commit="abc", built="2026-08-22T19:10:00Z")
        self.assertEqual(expected, this_build(EMBEDDED))

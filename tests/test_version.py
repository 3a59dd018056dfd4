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
        for build, printed in (
            (Build(version="1.2.3"), "api-exporter 1.2.3"),
            (Build(version="1.2.3", commit="abc"), "api-exporter 1.2.3 abc"),
            (
                Build(version="1.2.3", commit="abc", built="2026-08-22T19:10:00Z"),
                "api-exporter 1.2.3 abc 2026-08-22T19:10:00Z",
            ),
        ):
            self.assertEqual(printed, str(build))

    def test_not_embedded(self) -> None:
        """Without an embedded module only the version is known, from incremental."""
        self.assertEqual(Build(version=__version__.public()), this_build(EMBEDDED))

    def test_embedded(self) -> None:
        """The embedded commit and time are printed."""
        module = ModuleType(EMBEDDED)
        vars(module).update(COMMIT="abc", BUILT="2026-08-22T19:10:00Z")
        sys.modules[EMBEDDED] = module
        self.addCleanup(sys.modules.pop, EMBEDDED)
        self.assertEqual(
            Build(
                version=__version__.public(), commit="abc", built="2026-08-22T19:10:00Z"
            ),
            this_build(EMBEDDED),
        )

    def test_this_build(self) -> None:
        """The running build has the package's version in any installation."""
        self.assertEqual(__version__.public(), this_build().version)

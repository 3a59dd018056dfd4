"""The modules that printing the version does not import."""

import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.version import this_build

TWISTD = "from twisted.scripts.twistd import run; run()"


def asked(*command: str) -> tuple[str, set[str]]:
    """Return the output of a program, and the modules that it imports for that."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    return ran.stdout, names


class VersionTests(SynchronousTestCase):
    def test_imports(self) -> None:
        """The command imports nothing of Twisted to print its version. Under twistd,
        neither that nor the help needs the reactor or the service.
        """
        version = f"{this_build()}\n"
        twistd = ("-c", TWISTD, "api-exporter")
        late = {"twisted.internet.reactor", "OpenSSL", "api_exporter.service"}
        for command, beginning, needed, needless in (
            (("-m", "api_exporter", "--version"), version, "version", {"twisted"}),
            ((*twistd, "--version"), version, "settings.options", late),
            ((*twistd, "--help"), "Usage:", "settings.options", late),
        ):
            printed, names = asked(*command)
            self.assertTrue(printed.startswith(beginning), printed)
            self.assertIn(f"api_exporter.{needed}", names)
            self.assertEqual(set(), needless & names)

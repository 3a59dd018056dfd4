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
    def test_command(self) -> None:
        """The command imports nothing of Twisted to tell its version."""
        printed, names = asked("-m", "api_exporter", "--version")
        self.assertEqual(f"{this_build()}\n", printed)
        self.assertIn("api_exporter.version", names)
        self.assertEqual([], sorted(n for n in names if n.startswith("twisted")))

    def test_twistd(self) -> None:
        """Under twistd, neither it nor the help needs the reactor or the service."""
        for flag, beginning in (("--version", str(this_build())), ("--help", "Usage:")):
            printed, names = asked("-c", TWISTD, "api-exporter", flag)
            self.assertTrue(printed.startswith(beginning), printed)
            self.assertIn("api_exporter.settings.options", names)
            late = {"twisted.internet.reactor", "OpenSSL", "api_exporter.service"}
            self.assertEqual(set(), late & names)

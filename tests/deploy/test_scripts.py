"""All shell scripts."""

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, run
from tests.integration.programs import program


class ScriptTests(SynchronousTestCase):
    def test_scripts(self) -> None:
        """Shellcheck has no finding, and each script is executable."""
        scripts = sorted(DEPLOY.rglob("*.sh"))
        self.assertLess(6, len(scripts))
        scripts += [DEPLOY / "debian" / x for x in ("postinst", "prerm", "postrm")]
        for script in scripts:
            self.assertTrue(os.access(script, os.X_OK), script)
        self.assertEqual("", run(program("shellcheck"), *scripts))

    def test_usage(self) -> None:
        """An unknown option ends a script with status 2 and the usage."""
        for name in ("install.sh", "uninstall.sh", "iptables/api-exporter.sh"):
            self.assertIn("usage: ", run(DEPLOY / name, "--wrong", status=2))

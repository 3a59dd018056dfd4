"""All shell scripts, and the health check with an exporter and without one."""

import os
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, Exporter, new_folder, run
from tests.integration.programs import program

CHECK = DEPLOY / "check-health.sh"


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


class CheckHealthTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def test_lines(self) -> None:
        """The script prints the line of `--health`, and exits with its status."""
        exporter = Exporter(self)
        for path, status, begin in (("", 0, "OK"), ("/x", 2, "CRITICAL")):
            env = {**self.env, "LISTEN_ADDRESS": f"127.0.0.1:{exporter.port}"}
            arguments = [f"{exporter.url}{path}"] if path else []
            said = run(CHECK, *arguments, status=status, env=env)
            shown = f"{exporter.url}{path or '/health'}: {404 if path else 200}"
            self.assertEqual(f"{begin}: {shown}\n", said)

    def test_broken(self) -> None:
        """A command that cannot start is CRITICAL, too."""
        programs = new_folder(self)
        broken = programs / "api-exporter"
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
        said = run(CHECK, status=2, env={"PATH": f"{programs}:{os.environ['PATH']}"})
        self.assertEqual("CRITICAL: api-exporter does not start: status 1\n", said)

    def test_not_installed(self) -> None:
        """A missing command is CRITICAL, and the line names it."""
        if Path("/opt/api-exporter/bin").exists():
            return
        programs = new_folder(self)
        (programs / "sh").symlink_to(program("sh"))
        said = run(CHECK, status=2, env={"PATH": str(programs)})
        self.assertTrue(
            said.startswith("CRITICAL: the command api-exporter is not on"), said
        )

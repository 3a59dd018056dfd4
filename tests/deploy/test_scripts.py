"""All shell scripts, and the health check with an exporter and without one."""

import os
import socket
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, Exporter, new_folder, run
from tests.integration.programs import free_port, program

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
        """The script prints one line. Only a response with status 200 is OK. Without a
        URL it requests the LISTEN_ADDRESS of the settings.
        """
        exporter = Exporter(self)
        refused = f"http://127.0.0.1:{free_port()}/health"
        with socket.create_server(("127.0.0.1", 0)) as silent:
            mute = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
            for arguments, status, line in (
                ([f"{exporter.url}/health"], 0, f"OK: {exporter.url}/health: 200"),
                ([], 0, f"OK: {exporter.url}/health: 200"),
                ([f"{exporter.url}/x"], 2, f"CRITICAL: {exporter.url}/x: 404"),
                ([refused], 2, f"CRITICAL: {refused}: Connection refused"),
                ([mute, "1"], 2, f"CRITICAL: {mute}: no response within 1 s"),
            ):
                env = {**self.env, "LISTEN_ADDRESS": f"127.0.0.1:{exporter.port}"}
                said = run(CHECK, *arguments, status=status, env=env)
                self.assertEqual(f"{line}\n", said)

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

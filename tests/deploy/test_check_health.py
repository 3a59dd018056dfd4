"""The health check with an exporter and without one."""

import os
import socket
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, Exporter, run
from tests.integration.programs import free_port, program

CHECK = DEPLOY / "check-health.sh"


class CheckHealthTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def test_ok(self) -> None:
        """An exporter that answers is OK, in one line, with status 0."""
        exporter = Exporter(self)
        url = f"{exporter.url}/health"
        self.assertEqual(f"OK: {url}: 200\n", run(CHECK, url, env=self.env))

    def test_settings(self) -> None:
        """Without a URL it requests the LISTEN_ADDRESS of the settings."""
        exporter = Exporter(self)
        env = {**self.env, "LISTEN_ADDRESS": f"127.0.0.1:{exporter.port}"}
        said = run(CHECK, env=env)
        self.assertEqual(f"OK: {exporter.url}/health: 200\n", said)

    def test_refused(self) -> None:
        """A port without a listener is CRITICAL, in one line, with status 2."""
        url = f"http://127.0.0.1:{free_port()}/health"
        said = run(CHECK, url, status=2, env=self.env)
        self.assertEqual(f"CRITICAL: {url}: Connection refused\n", said)

    def test_not_found(self) -> None:
        """An answer other than 200 is CRITICAL."""
        url = f"{Exporter(self).url}/nothing"
        said = run(CHECK, url, status=2, env=self.env)
        self.assertEqual(f"CRITICAL: {url}: 404\n", said)

    def test_time_limit(self) -> None:
        """A server that accepts and sends nothing is CRITICAL after the time limit."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
            said = run(CHECK, url, "1", status=2, env=self.env)
            self.assertEqual(f"CRITICAL: {url}: no response within 1 s\n", said)

    def test_not_installed(self) -> None:
        """A missing command is CRITICAL, and the line names it."""
        if Path("/opt/api-exporter/bin").exists():
            return
        programs = Path(self.mktemp()).absolute()
        programs.mkdir()
        (programs / "sh").symlink_to(program("sh"))
        said = run(CHECK, status=2, env={"PATH": str(programs)})
        self.assertTrue(
            said.startswith("CRITICAL: the command api-exporter is not on"), said
        )

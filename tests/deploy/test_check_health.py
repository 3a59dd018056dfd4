"""The health check, against the exporter and against what is none."""

import os
import socket
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, Exporter, run
from tests.integration.programs import free_port, program

CHECK = DEPLOY / "check-health.sh"


class CheckHealthTests(SynchronousTestCase):
    def test_ok(self) -> None:
        """An exporter that answers is OK, in one line, with status 0."""
        program("curl")
        url = f"{Exporter(self).url}/health"
        self.assertRegex(run(CHECK, url), rf"^OK: {url}: 200 after [0-9.]+ s *\n$")

    def test_ok_without_curl(self) -> None:
        """Where there is no curl, as in a container, Python does."""
        url = f"{Exporter(self).url}/health"
        self.assertEqual(f"OK: {url}: 200\n", run(CHECK, url, env=self.without_curl()))

    def test_refused(self) -> None:
        """A port where nobody listens is CRITICAL, in one line, with status 2."""
        url = f"http://127.0.0.1:{free_port()}/health"
        for env in (dict(os.environ), self.without_curl()):
            said = run(CHECK, url, status=2, env=env)
            self.assertRegex(said, rf"^CRITICAL: {url}: .*([Rr]efused|connect).*\n$")
            self.assertEqual(1, said.count("\n"))

    def test_not_found(self) -> None:
        """An answer other than 200 is CRITICAL."""
        url = f"{Exporter(self).url}/nothing"
        for env in (dict(os.environ), self.without_curl()):
            said = run(CHECK, url, status=2, env=env)
            self.assertRegex(said, rf"^CRITICAL: {url}: .*404.*\n$")

    def test_time_limit(self) -> None:
        """A server that accepts and says nothing is CRITICAL when the time is up."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
            for env in (dict(os.environ), self.without_curl()):
                said = run(CHECK, url, "1", status=2, env=env)
                self.assertRegex(said, rf"^CRITICAL: {url}: .+\n$")

    def without_curl(self) -> dict[str, str]:
        """An environment in which only what the script needs is found."""
        programs = Path(self.mktemp()).absolute()
        programs.mkdir()
        (programs / "python3").symlink_to(sys.executable)
        for name in ("sh", "timeout", "tail"):
            (programs / name).symlink_to(program(name))
        return {"PATH": str(programs)}

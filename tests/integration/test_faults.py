"""The world breaks around a running exporter: it goes on, and recovers by itself."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest import SkipTest

from api_exporter.demo.server import DEMO_TOKEN
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import (
    PATIENCE,
    ROOT,
    Running,
    environment,
    free_port,
    get,
    start,
    until,
)


class FaultTests(ExporterTestCase):
    def upstream(self, port: int) -> Running:
        """Start the simulated upstream, and wait until it answers."""
        directory = Path(self.mktemp())
        directory.mkdir()
        command = [sys.executable, "-m", "checks.benchmarks.upstream", f"{port}", "50"]
        running = start(self, command, directory, environment(PYTHONPATH=str(ROOT)))
        url = f"http://127.0.0.1:{port}/api/none"
        until(lambda: get(url)[0] == 404, "the upstream answers")
        return running

    def refreshes(self) -> float:
        failures = self.sample('api_exporter_refresh_failures_total{resource="peers"}')
        return self.sample('api_exporter_refreshes_total{resource="peers"}') - failures

    def test_no_descriptors(self) -> None:
        """With every descriptor taken it neither dies nor spins, and recovers."""
        port = free_port()
        first = self.upstream(port)
        environ = self.reading(
            f"http://127.0.0.1:{port}",
            UPSTREAM_API_TOKEN=DEMO_TOKEN,
            REFRESH_INTERVALS="peers=1s",
        )
        running = self.started(self.exporter, environ)
        pid = running.process.pid
        limit = 64
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
        flood = [
            socket.create_connection(("127.0.0.1", self.port)) for _ in range(2 * limit)
        ]
        for one in flood:
            self.addCleanup(one.close)
        until(lambda: running.open_files() >= limit - 2, "exhaustion")
        first.stop(signal.SIGKILL)  # so that the next refresh needs a descriptor
        self.upstream(port)
        before = cpu(pid)
        time.sleep(3)
        self.assertLess(cpu(pid) - before, 1.5)
        for one in flood:
            one.close()
        until(lambda: get(self.url("/health"))[0] == 200, "an answer")
        until(
            lambda: self.sample("netbird_api_up") == 1, "the upstream is reached again"
        )
        before_more = self.refreshes()
        until(lambda: self.refreshes() >= before_more + 2, "two refreshes more")
        self.assertIsNone(running.process.poll())
        until(lambda: running.open_files() < 40, "free descriptors")
        self.assertNotIn("Traceback", running.said())

    def test_interrupted_check(self) -> None:
        """A check that a signal ends has no status of success; one may be ignored."""
        for before, option, number in (
            ((), "--check", signal.SIGTERM),
            ((), "--once", signal.SIGINT),
            (("env", "--ignore-signal=INT"), "--check", signal.SIGTERM),
        ):
            silent = socket.create_server(("127.0.0.1", 0))
            silent.settimeout(PATIENCE)
            self.addCleanup(silent.close)
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            environ = self.reading(url, UPSTREAM_API_TOKEN=DEMO_TOKEN)
            command = [*before, *self.exporter, option]
            checking = start(self, command, self.directory, environ)
            silent.accept()[0].close()
            if before:
                checking.process.send_signal(signal.SIGINT)
            self.assertEqual(-number, checking.stop(number)[0], checking.said())

    def test_interrupted_in_a_container(self) -> None:
        """A signal ends process 1 of a container, too: a check, and a slow start."""
        contained = ("unshare", "--map-root-user", "--pid", "--fork", "--kill-child")
        if subprocess.run([*contained, "true"], check=False).returncode:
            raise SkipTest("missing privilege: process namespaces")
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        for options, number in (
            (["--check"], signal.SIGTERM),
            (["--once"], signal.SIGINT),
            (["--config", str(pipe)], signal.SIGTERM),
        ):
            silent = socket.create_server(("127.0.0.1", 0))
            silent.settimeout(PATIENCE)
            self.addCleanup(silent.close)
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            environ = self.reading(url, UPSTREAM_API_TOKEN=DEMO_TOKEN)
            command = [*contained, *self.exporter, *options]
            running = start(self, command, self.directory, environ)
            if "--config" in options:
                until(lambda: self.writes(pipe), "the configuration is read")
            else:
                self.addCleanup(silent.accept()[0].close)
            pid = running.process.pid
            first = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            os.kill(int(first), number)
            self.assertEqual(128 + number, running.process.wait(PATIENCE), options)

    def writes(self, pipe: Path) -> bool:
        """Open a pipe for writing, and leave it open, if it has a reader."""
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        self.addCleanup(os.close, writer)
        return True


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""The world breaks around a running exporter: it goes on, and recovers by itself."""

import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path

from api_exporter.demo.server import DEMO_TOKEN
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import (
    ALL_READ,
    ROOT,
    Running,
    free_port,
    get,
    start,
    until,
)

HOUR = 3600
PEERS_STAY = "netbird_api_peer_connected{"


class FaultTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.upstream_port = free_port()
        self.places = 0

    def program(self, module: str, *arguments: str, **settings: str) -> Running:
        """Start a program of this tree, its output in a directory of its own."""
        self.places += 1
        directory = self.directory / str(self.places)
        directory.mkdir()
        command = [sys.executable, "-m", module, *arguments]
        environ = self.settings(PYTHONPATH=str(ROOT), **settings)
        return start(self, command, directory, environ)

    def upstream(self) -> Running:
        """Start the simulated upstream, and wait until it answers."""
        running = self.program("benchmarks.upstream", str(self.upstream_port), "50")
        url = f"http://127.0.0.1:{self.upstream_port}/api/none"
        until(lambda: get(url)[0] == 404, "the upstream answers")
        return running

    def reader(self, module: str = "api_exporter", **settings: str) -> Running:
        """Start an exporter that reads the peers every second; wait for all metrics."""
        running = self.program(
            module,
            UPSTREAM_API_URL=f"http://127.0.0.1:{self.upstream_port}",
            UPSTREAM_API_TOKEN=DEMO_TOKEN,
            REFRESH_INTERVALS="peers=1s",
            **settings,
        )
        self.wait_for_sign(running, lambda: ALL_READ in self.page(), "all metrics")
        return running

    def refreshes(self) -> float:
        failures = self.sample('api_exporter_refresh_failures_total{resource="peers"}')
        return self.sample('api_exporter_refreshes_total{resource="peers"}') - failures

    def assert_refreshing(self, times: int = 2) -> None:
        """Good refreshes of the peers go on."""
        before = self.refreshes()
        until(lambda: self.refreshes() >= before + times, f"{times} refreshes more")

    def test_clock_jumps(self) -> None:
        """The wall clock set back or forward stops no timer and ends no metric."""
        offset = self.directory.absolute() / "offset"
        offset.write_text("0")
        self.upstream()
        running = self.reader("tests.integration.jumping", CLOCK_OFFSET=str(offset))
        success = (
            'api_exporter_resource_last_success_timestamp_seconds{resource="peers"}'
        )
        for jump in (-HOUR, 24 * HOUR, 0):
            new = self.directory.absolute() / "new"
            new.write_text(str(jump))
            new.rename(offset)
            self.assert_refreshing()
            shift = self.sample(success) - time.time()
            self.assertLess(abs(shift - jump), 60)
            self.assertIn(PEERS_STAY, self.page())
        self.assertNotIn("have expired", running.said())
        self.assertNotIn("Traceback", running.said())

    def test_no_descriptors(self) -> None:
        """With every descriptor taken it neither dies nor spins, and recovers."""
        first = self.upstream()
        running = self.reader()
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
        self.upstream()
        before = cpu(pid)
        time.sleep(3)
        self.assertLess(cpu(pid) - before, 1.5)
        for one in flood:
            one.close()
        until(lambda: get(self.url("/health"))[0] == 200, "an answer")
        until(
            lambda: self.sample("netbird_api_up") == 1, "the upstream is reached again"
        )
        self.assert_refreshing()
        self.assertIsNone(running.process.poll())
        until(lambda: running.open_files() < 40, "free descriptors")
        self.assertNotIn("Traceback", running.said())


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

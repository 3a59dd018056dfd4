"""The access log and the reports: `--check` and `--once` leave it as it is."""

import json
import os
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

from api_exporter.logs.listing import NANOSECONDS_PER_SECOND
from tests.integration.event_logs import EventLogTestCase
from tests.integration.programs import start, until
from tests.logs import body
from tests.logs.paging import SERVICE, Table

SERVICES = json.dumps(
    [{"id": SERVICE, "name": "web", "mode": "http", "enabled": True}]
).encode()


class CheckTests(EventLogTestCase):
    """A service with an access log."""

    def setUp(self) -> None:
        super().setUp()
        self.table = Table()

    def answer(self, target: str) -> bytes:
        parts = urlsplit(target)
        match parts.path:
            case "/api/events/proxy":
                return self.table.answer(parts.query)
            case "/api/reverse-proxies/services":
                return SERVICES
            case "/api/events/audit":
                return body([1, 2, 3])
        return b"[]"

    def test_writes_nothing(self) -> None:
        """`--check` and `--once` write nothing, before the first start and beside a
        daemon, and take no lock from it.
        """
        environ = self.environ(
            COLLECTORS="peers",
            ACCESS_LOG_FILE=str(self.file),
            EVENTS_FILE=str(self.directory / "events.jsonl"),
        )

        def report(flag: str) -> None:
            ended = self.ended([*self.exporter, flag], environ)
            self.assertEqual(0, ended.returncode, ended.stderr)
            self.assertNotIn("internal", ended.stdout + ended.stderr)

        for flag in ("--check", "--once"):
            report(flag)
            self.assertEqual([], os.listdir(self.directory))
        self.table.add(1, time.time_ns() - 60 * NANOSECONDS_PER_SECOND)
        elsewhere = Path(self.mktemp()).parent  # the output is not among the files
        running = start(self, self.exporter, elsewhere, environ)
        until(lambda: self.lines() == 1, "a row")
        until(lambda: "access_log_lag_seconds 0.0" in self.page(), "the end")
        until((self.directory / "events.jsonl").exists, "the events")
        running.process.send_signal(signal.SIGSTOP)  # it holds its lock, and no more
        self.addCleanup(running.process.send_signal, signal.SIGCONT)
        stat = Path(f"/proc/{running.process.pid}/stat")
        until(lambda: ") T " in stat.read_text(), "the daemon stops")
        self.table.add(2, time.time_ns() - 30 * NANOSECONDS_PER_SECOND)
        before = self.folder()
        for flag in ("--check", "--once"):
            report(flag)
            self.assertEqual(before, self.folder())
        self.assertEqual(1, self.lines())

    def folder(self) -> dict[str, tuple[int, int, bytes]]:
        """Mode, time and content of each file."""
        return {
            path.name: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
            for path in self.directory.iterdir()
        }

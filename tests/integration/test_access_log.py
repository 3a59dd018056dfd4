"""The access log through real processes that are killed at any moment."""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from api_exporter.logs.listing import NANOSECONDS_PER_SECOND
from tests.integration.event_logs import EventLogTestCase
from tests.integration.programs import start, until
from tests.logs import body
from tests.logs.paging import SERVICE, Table, number

KILLS = int(os.environ.get("ACCESS_LOG_KILLS", "3"))
"""`make acceptance` says 50."""

ROWS = 400 * KILLS

SERVICES = json.dumps(
    [{"id": SERVICE, "name": "web", "mode": "http", "enabled": True}]
).encode()


class AccessLogTestCase(EventLogTestCase):
    """A service whose access log may grow between pages."""

    setting = "ACCESS_LOG_FILE"

    def setUp(self) -> None:
        super().setUp()
        self.table = Table()
        self._lock = threading.Lock()

    def grow(self) -> None:
        """Add rows before each page."""

    def answer(self, target: str) -> bytes:
        parts = urlsplit(target)
        with self._lock:
            match parts.path:
                case "/api/events/proxy":
                    self.grow()
                    return self.table.answer(parts.query)
                case "/api/reverse-proxies/services":
                    return SERVICES
                case "/api/events/audit":
                    return body([1, 2, 3])
            return b"[]"

    def environ(self, **settings: str) -> dict[str, str]:
        pace = {"ACCESS_LOG_REQUESTS_PER_MINUTE": "60", "COLLECTORS": "peers"}
        return super().environ(**{**pace, **settings})

    def numbers(self) -> list[int]:
        return [number(json.loads(line)["id"]) for line in self.written().splitlines()]

    def wait_for_lines(self, count: int) -> None:
        until(lambda: self.lines() >= count, f"{count} rows", 600)


class CheckTests(AccessLogTestCase):
    def test_writes_nothing(self) -> None:
        """`--check` and `--once` write nothing, before the first start and beside a
        daemon, and take no lock from it.
        """
        environ = self.environ(
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
        self.wait_for_lines(1)
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
        self.assertEqual([1], self.numbers())

    def folder(self) -> dict[str, tuple[int, int, bytes]]:
        """Mode, time and content of each file."""
        return {
            path.name: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
            for path in self.directory.iterdir()
        }


class KillTests(AccessLogTestCase):
    def test_kills(self) -> None:
        """Killed again and again, it writes each row once: ties, late ones and all."""
        chance = random.Random(35)
        begin = time.time_ns() - 7200 * NANOSECONDS_PER_SECOND
        serial = 0
        while serial < ROWS * 9 // 10:  # forty of each second, and once 250
            second = 50 if 2000 <= serial < 2250 else serial // 40
            serial += 1
            self.table.add(serial, begin + second * NANOSECONDS_PER_SECOND)

        def grow() -> None:
            """Some rows more, up to ten seconds late."""
            nonlocal serial
            for _ in range(chance.randrange(12) if serial < ROWS else 0):
                serial += 1
                late = chance.choice((0, 0, 0, 1, 3, 10)) * NANOSECONDS_PER_SECOND
                self.table.add(serial, time.time_ns() - late)

        def rest() -> None:
            """All that are left."""
            while serial < ROWS:
                grow()

        self.grow = grow  # type: ignore[method-assign]
        self.kill_writers(KILLS, 20_000, chance)
        running = self.writing()
        self.grow = rest  # type: ignore[method-assign]
        until(lambda: ROWS <= serial <= self.lines(), "all rows", 600)
        running.stop()
        self.assertEqual(Counter(range(1, serial + 1)), Counter(self.numbers()))

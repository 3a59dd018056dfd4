"""The access log through real processes that are killed at any moment."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.events.listing import NANOSECONDS_PER_SECOND
from tests.events.paging import SERVICE, Table, number
from tests.integration.json_server import json_server
from tests.integration.programs import (
    Running,
    environment,
    free_port,
    get,
    program,
    start,
    until,
)

KILLS = int(os.environ.get("ACCESS_LOG_KILLS", "3"))
"""`make acceptance` says 50."""

ROWS = 400 * KILLS

TOKEN = "nbp_0canary0access0log00canary0canary001"

SERVICES = json.dumps(
    [{"id": SERVICE, "name": "web", "mode": "http", "enabled": True}]
).encode()


class Upstream:
    """Answers with services and the access log, which grows between pages.

    Args:
        table: the rows.
        grow: called before each page.
    """

    def __init__(self, test: SynchronousTestCase, table: Table) -> None:
        self.services = SERVICES
        self.grow = lambda: None
        self.asked: list[tuple[float, str]] = []
        self._table = table
        self._lock = threading.Lock()
        self.url = json_server(test, self._answer)

    def _answer(self, target: str) -> bytes:
        parts = urlsplit(target)
        with self._lock:
            self.asked.append((time.monotonic(), parts.path))
            if parts.path == "/api/events/proxy":
                self.grow()
                return self._table.answer(parts.query)
            services = parts.path == "/api/reverse-proxies/services"
            return self.services if services else b"[]"


class AccessLogTestCase(SynchronousTestCase):
    timeout = 1200

    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.file = self.directory / "access.jsonl"
        self.port = free_port()
        self.table = Table()
        self.upstream = Upstream(self, self.table)

    def exporter(self, **settings: str) -> Running:
        environ = environment(
            UPSTREAM_API_URL=self.upstream.url,
            UPSTREAM_API_TOKEN=TOKEN,
            LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
            COLLECTORS="peers",
            **{"ACCESS_LOG_REQUESTS_PER_MINUTE": "60", **settings},
        )
        return start(self, [program("api-exporter")], self.directory, environ)

    def lines(self) -> list[bytes]:
        return self.file.read_bytes().splitlines() if self.file.exists() else []

    def numbers(self) -> list[int]:
        return [number(json.loads(line)["id"]) for line in self.lines()]

    def page(self) -> str:
        return get(f"http://127.0.0.1:{self.port}/metrics")[2].decode()


class CheckTests(AccessLogTestCase):
    def test_writes_nothing(self) -> None:
        """`--check` and `--once` write nothing, before the first start and beside a
        daemon, and take no lock from it.
        """
        token = self.directory / "token"
        token.write_text(TOKEN)
        environ = environment(
            UPSTREAM_API_URL=self.upstream.url,
            UPSTREAM_API_TOKEN_FILE=str(token),
            LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
            ACCESS_LOG_FILE=str(self.file),
            EVENTS_FILE=str(self.directory / "events.jsonl"),
            COLLECTORS="peers",
        )

        def report(flag: str) -> None:
            command = [program("api-exporter"), flag]
            ended = subprocess.run(
                command, env=environ, capture_output=True, text=True, check=False
            )
            self.assertEqual(0, ended.returncode, ended.stderr)
            self.assertNotIn("internal", ended.stdout + ended.stderr)

        for flag in ("--check", "--once"):
            report(flag)
            self.assertEqual(["token"], os.listdir(self.directory))
        self.table.add(1, time.time_ns() - 60 * NANOSECONDS_PER_SECOND)
        command, folder = [program("api-exporter")], Path(self.mktemp()).parent
        running = start(self, command, folder, environ)
        until(lambda: len(self.lines()) == 1, "the row")
        until(lambda: "access_log_lag_seconds 0.0" in self.page(), "the end")
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

        self.upstream.grow = grow
        for _ in range(KILLS):
            size = self.file.stat().st_size if self.file.exists() else 0
            running = self.exporter(ACCESS_LOG_FILE=str(self.file))
            end = time.monotonic() + chance.uniform(1, 5)
            while time.monotonic() < end:
                if self.file.exists() and self.file.stat().st_size > size + 20_000:
                    break
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.05))
            running.process.kill()
            running.process.wait()
        running = self.exporter(ACCESS_LOG_FILE=str(self.file))
        self.upstream.grow = rest
        until(lambda: ROWS <= serial <= len(self.lines()), "all rows", 600)
        running.stop()
        self.assertEqual(Counter(range(1, serial + 1)), Counter(self.numbers()))


class OperationTests(AccessLogTestCase):
    def test_counters(self) -> None:
        """One process counts each row once, and a line has nothing personal."""
        begin = time.time_ns() - 500 * NANOSECONDS_PER_SECOND
        for one in range(1, 2001):
            self.table.add(
                one,
                begin + one // 7 * NANOSECONDS_PER_SECOND,
                status_code=200 + one % 2,
            )
        running = self.exporter(ACCESS_LOG_FILE=str(self.file))
        until(lambda: len(self.lines()) >= 2000, "all rows", 600)
        until(lambda: "access_log_lag_seconds 0.0" in self.page(), "the end")
        page = self.page()
        running.stop()
        self.assertEqual(Counter(range(1, 2001)), Counter(self.numbers()))
        found = re.findall(
            r"^api_exporter_access_log_(\w+_total\S*) (\S+)$", page, re.MULTILINE
        )
        labels = f',proxy_service="web",proxy_service_id="{SERVICE}"'
        counts = {name.replace(labels, ""): float(value) for name, value in found}
        self.assertEqual(
            {
                "lines_written_total": 2000.0,
                "lines_missed_total": 0.0,
                "rows_skipped_total": 0.0,
                'requests_total{code="2xx",protocol="http"}': 2000.0,
                'bytes_total{direction="upload"}': 92.0 * 2000,
                'bytes_total{direction="download"}': 8476.0 * 2000,
            },
            counts,
        )
        for line in self.lines():
            for word in (b"203.0.113", b"/burst", b"web.eu", b"Berlin", b'"BE"'):
                self.assertNotIn(word, line)

    def test_personal(self) -> None:
        """The token, and what is personal, is in no log and on no page."""
        begin = time.time_ns() - 500 * NANOSECONDS_PER_SECOND
        personal: dict[str, object] = {
            "source_ip": "192.0.2.77",
            "user_id": "u-canary",
            "path": "/c4nary",
            "host": "canary.test",
            "city_name": "Canaryville",
            "subdivision_code": "C4NARY",
            "metadata": {"crowdsec_verdict": "ban", "user": "canary-name"},
            "of_tomorrow": ["canary-new"],
        }
        for one in range(1, 101):
            self.table.add(one, begin + one * NANOSECONDS_PER_SECOND, **personal)
        self.table.add(101, begin, **personal | {"id": ""})
        self.table.add(102, begin, **personal | {"id": "canary-id", "timestamp": []})
        running = self.exporter(ACCESS_LOG_FILE=str(self.file), LOG_LEVEL="debug")
        until(lambda: len(self.lines()) >= 100, "all rows", 600)
        base = f"http://127.0.0.1:{self.port}"
        pages = ("/metrics", "/", "/sd", "/healthz", "/runbooks")
        told = [get(f"{base}{page}")[2].decode() for page in pages]
        running.stop()
        cursor = Path(f"{self.file}.cursor").read_text()
        told += [running.said(), self.file.read_text(), cursor]
        self.assertIn(
            "unreadable rows of the access log are not written", running.said()
        )
        for text in told:
            for word in (TOKEN, "192.0.2.77", "canary", "Canary", "c4nary", "C4NARY"):
                self.assertNotIn(word, text)

    def test_nothing_to_ask(self) -> None:
        """Without a service or a cluster, the access log is not requested."""
        self.upstream.services = b"[]"
        running = self.exporter(ACCESS_LOG_METRICS="true")
        until(lambda: "access_log is not requested" in running.said(), "a line")
        time.sleep(1)
        running.stop()
        self.assertNotIn("/api/events/proxy", [path for _, path in self.upstream.asked])
        self.assertEqual(1, running.said().count("is not requested"))

    def test_no_folder(self) -> None:
        """A missing folder has a reason of its own, and costs no request."""
        self.table.add(1)
        self.file = self.directory / "missing" / "access.jsonl"
        running = self.exporter(ACCESS_LOG_FILE=str(self.file))
        until(lambda: "reason=log_file" in running.said(), "the reason")
        self.assertNotIn("internal", running.said())
        self.assertNotIn("/api/events/proxy", [path for _, path in self.upstream.asked])
        self.file.parent.mkdir()
        until(lambda: len(self.lines()) == 1, "the row")
        until(lambda: "access_log can be refreshed again" in running.said(), "the end")
        running.stop()

    def test_off(self) -> None:
        """Without the settings, the access log is not requested."""
        running = self.exporter()
        until(lambda: "netbird_api_peers" in self.page(), "a page")
        time.sleep(1)
        running.stop()
        self.assertNotIn("/api/events/proxy", [path for _, path in self.upstream.asked])
        self.assertNotIn("access_log", running.said())

"""Audit events through real processes that are killed at any moment."""

import gzip
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.events import body
from tests.integration.json_server import json_server
from tests.integration.programs import (
    ROOT,
    Running,
    environment,
    free_port,
    get,
    program,
    start,
    until,
)

KILLS = int(os.environ.get("EVENTS_KILLS", "6"))
"""`make acceptance` says 200."""

EVENTS = 100 * KILLS

TOKEN = "nbp_0canary0events0events0events0can0001"


def ids(text: bytes) -> list[int]:
    """Return the ids of whole lines."""
    return [int(json.loads(line)["id"]) for line in text.splitlines()]


def upstream(test: SynchronousTestCase, listed: Callable[[], list[int]]) -> str:
    """The address of one that has nothing but audit events.

    Args:
        listed: the ids that there are now.
    """

    def answer(target: str) -> bytes:
        return body(listed()[-10_000:]) if target == "/api/events/audit" else b"[]"

    return json_server(test, answer)


class EventsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.file = self.directory / "events.jsonl"
        self.port = free_port()
        self.there = 0

    def environ(self, url: str, **settings: str) -> dict[str, str]:
        return environment(
            UPSTREAM_API_URL=url,
            UPSTREAM_API_TOKEN=TOKEN,
            LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
            REFRESH_INTERVALS="events=1s",
            **settings,
        )

    def exporter(self, url: str, **settings: str) -> Running:
        environ = self.environ(url, **settings)
        return start(self, [program("api-exporter")], self.directory, environ)

    def listed(self) -> list[int]:
        return list(range(1, self.there + 1))

    def page(self) -> str:
        return get(f"http://127.0.0.1:{self.port}/metrics")[2].decode()

    def written(self) -> bytes:
        return self.file.read_bytes() if self.file.exists() else b""


class KillTests(EventsTestCase):
    timeout = 1200

    def growing(self) -> list[int]:
        """Two batches more than are written; some of the newest come late."""
        last = min(EVENTS, self.written().count(b"\n") + 200)
        late = {last - 1, last - 4} if last < EVENTS else set()
        return [number for number in range(1, last + 1) if number not in late]

    def test_kills(self) -> None:
        """Killed again and again, at random moments, it writes each event once."""
        url = upstream(self, self.growing)
        chance = random.Random(24)
        for _ in range(KILLS):
            size = len(self.written())
            running = self.exporter(url, EVENTS_FILE=str(self.file))
            end = time.monotonic() + chance.uniform(1, 5)
            while len(self.written()) == size and time.monotonic() < end:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.03))
            running.process.kill()
            running.process.wait()
        running = self.exporter(url, EVENTS_FILE=str(self.file))
        until(lambda: self.written().count(b"\n") >= EVENTS, "all events", 600)
        running.stop()
        found = Counter(ids(self.written()))
        self.assertEqual(Counter(range(1, EVENTS + 1)), found)


class OperationTests(EventsTestCase):
    timeout = 150

    def test_full_disk(self) -> None:
        """A full disk holds up the events and nothing else, until there is room."""
        self.there = 2000
        url = upstream(self, self.listed)
        running = self.exporter(url, EVENTS_FILE=str(self.file))
        pid = running.process.pid
        until(lambda: self.written().count(b"\n") == 2000, "2000 events")
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        room = (len(self.written()) + 1000, before[1])
        resource.prlimit(pid, resource.RLIMIT_FSIZE, room)
        self.there = 2500
        until(lambda: "cannot write audit events" in running.said(), "a warning")
        time.sleep(3)
        self.assertEqual(1, running.said().count("cannot write audit events"))
        self.assertEqual(200, get(f"http://127.0.0.1:{self.port}/health")[0])
        self.assertEqual(list(range(1, 2001)), ids(self.written()))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        until(lambda: self.written().count(b"\n") == 2500, "2500 events")
        running.stop()
        self.assertEqual(list(range(1, 2501)), ids(self.written()))
        self.assertIn("are written to", running.said())
        self.assertNotIn("canary", running.said())

    def test_hung_disk(self) -> None:
        """A disk that hangs keeps no program from its end, and no line is lost."""
        self.there = 250
        url = upstream(self, self.listed)
        code = (
            "import os, threading\n"
            "def hang(file):\n"
            "    if os.path.getsize('events.jsonl'):\n"
            "        os.write(2, b'hanging\\n')\n"
            "        threading.Event().wait()\n"
            "os.fsync = hang\n"
            "from api_exporter.cli import main\n"
            "main()\n"
        )
        environ = self.environ(url, EVENTS_FILE=str(self.file))
        command = [sys.executable, "-c", code]
        running = start(self, command, self.directory, environ)
        until(lambda: "hanging" in running.said(), "a disk that hangs")
        until(
            lambda: 'resource_up{resource="instance_version"} ' in self.page(),
            "other resources",
        )
        status, _ = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertIn("stopped", running.said())
        running = self.exporter(url, EVENTS_FILE=str(self.file))
        until(lambda: self.written().count(b"\n") >= 250, "250 events")
        running.stop()
        self.assertEqual(list(range(1, 251)), ids(self.written()))

    def test_moved(self) -> None:
        """After logrotate moved it, with SIGHUP or without, there is a new file."""
        self.there = 100
        url = upstream(self, self.listed)
        running = self.exporter(url, EVENTS_FILE=str(self.file))
        for turn in (1, 2):
            until(lambda: self.written().count(b"\n") == 100, "100 events")
            self.file.rename(f"{self.file}.{turn}")
            if turn == 1:
                running.process.send_signal(signal.SIGHUP)
            self.there += 100
        until(lambda: self.written().count(b"\n") == 100, "100 events")
        running.stop()
        for turn in (1, 2):
            found = ids(Path(f"{self.file}.{turn}").read_bytes())
            self.assertEqual(list(range(100 * turn - 99, 100 * turn + 1)), found)

    def test_logrotate(self) -> None:
        """The shipped file for logrotate moves and compresses, and no line is lost."""
        logrotate = program("logrotate")
        shipped = (ROOT / "deploy/logrotate/api-exporter").read_text()
        shipped = shipped.replace("/var/log/api-exporter", str(self.directory))
        config = self.directory / "logrotate.conf"
        config.write_text(re.sub(r"^ *su .*\n", "", shipped, flags=re.MULTILINE))
        config.chmod(0o600)
        state = f"--state={self.directory / 'state'}"
        url = upstream(self, self.listed)
        running = self.exporter(url, EVENTS_FILE=str(self.file))
        for turn in range(1, 4):
            self.there = 100 * turn
            until(
                lambda: self.written().count(b"\n") == 100, f"100 events more, {turn}"
            )
            if turn < 3:
                command = [logrotate, "--force", state, str(config)]
                subprocess.run(command, check=True, timeout=60)
        running.stop()
        oldest = gzip.decompress(Path(f"{self.file}.2.gz").read_bytes())
        whole = oldest + Path(f"{self.file}.1").read_bytes() + self.written()
        self.assertEqual(list(range(1, 301)), ids(whole))

    def test_output(self) -> None:
        """Standard output has the events of all accounts, and nothing but them."""
        self.there = 5000
        url = upstream(self, self.listed)
        folder = self.directory / "accounts"
        folder.mkdir()
        for name in ("acme", "beta"):
            (folder / f"{name}.conf").write_text(f"EVENTS_CURSOR_FILE={name}.cursor\n")
        environ = self.environ(url, EVENTS_FILE="-", ACCOUNTS_DIR=str(folder))
        err = self.directory / "err"
        with (
            err.open("wb") as errors,
            subprocess.Popen(
                [program("api-exporter")],
                env=environ,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            self.addCleanup(process.kill)
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(10_000)]
            process.terminate()
            rest = process.stdout.read()
        self.assertEqual(b"", rest)
        found = Counter(json.loads(one)["account"] for one in lines)
        self.assertEqual({"acme": 5000, "beta": 5000}, found)
        self.assertEqual({2}, set(Counter(ids(b"".join(lines))).values()))
        self.assertIn("stopped", err.read_text())

    def test_off(self) -> None:
        """An optional feature is imported only if a setting enables it."""
        code = (
            "import os, sys; from twisted.internet import reactor;"
            "from api_exporter.service import Configuration, assemble;"
            "from api_exporter.refresh.compute import compute_at_once;"
            "from api_exporter.settings.environment import read;"
            "assemble(Configuration(read(os.environ), None, None), reactor,"
            " pprof='PPROF' in os.environ, dropped=int,"
            " log_threads=reactor.getThreadPool(), compute=compute_at_once);"
            "print(*(name for name in sorted(sys.modules) if name in"
            " {f'api_exporter.{optional}' for optional in"
            " ('demo', 'events', 'web.accounts', 'web.pprof')}))"
        )
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        (folder / "acme.conf").write_text("UPSTREAM_API_TOKEN=secret\n")
        for settings, imported in (
            ({}, ""),
            ({"EVENTS_FILE": "x"}, "api_exporter.events"),
            ({"ACCESS_LOG_METRICS": "true"}, "api_exporter.events"),
            ({"ACCOUNTS_DIR": str(folder)}, "api_exporter.web.accounts"),
            ({"PPROF": ""}, "api_exporter.web.pprof"),
        ):
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=self.environ("http://127.0.0.1:9", **settings),
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(f"{imported}\n", done.stdout)
        self.assertFalse((ROOT / "x").exists())

    def test_nowhere(self) -> None:
        """Where there is no standard output, it says so instead of losing events."""
        settings = {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": "cursor"}
        for command, why in (
            ([program("twistd"), "--pidfile=x.pid", "api-exporter"], "a daemon has no"),
            ([program("api-exporter")], "standard output is closed, or /dev/null"),
        ):
            done = subprocess.run(
                command,
                cwd=self.directory,
                env=self.environ("http://127.0.0.1:9", **settings),
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
            self.assertEqual(78, done.returncode)
            self.assertIn(f"EVENTS_FILE: {why}", done.stderr)

    def test_reports(self) -> None:
        """--check and --once write no events."""
        self.there = 100
        url = upstream(self, self.listed)
        for flag in ("--check", "--once"):
            for output in (str(self.file), "-"):
                cursor = str(self.directory / "cursor")
                settings = {"EVENTS_FILE": output, "EVENTS_CURSOR_FILE": cursor}
                done = subprocess.run(
                    [program("api-exporter"), flag],
                    env=self.environ(url, **settings),
                    check=False,
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertNotIn('"activity_code"', done.stdout)
        self.assertEqual([], list(self.directory.iterdir()))

"""Audit events through real processes that are killed at any moment."""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tests.integration.exporter import Answer, ExporterTestCase, Upstream, says
from tests.integration.programs import ROOT, Running, program, start, until
from tests.logs import body

KILLS = int(os.environ.get("EVENTS_KILLS", "6"))
"""`make acceptance` says 200."""

EVENTS = 100 * KILLS


def ids(text: bytes) -> list[int]:
    """Return the ids of whole lines."""
    return [int(json.loads(line)["id"]) for line in text.splitlines()]


class EventsTestCase(ExporterTestCase):
    """An upstream with events, and a file for them."""

    timeout = 1200

    def setUp(self) -> None:
        super().setUp()
        self.existing = 0
        self.file = self.directory / "log.jsonl"
        case = self

        class Server(Upstream):
            def answer(self, path: str, authorization: str) -> Answer:  # noqa: ARG002
                events = path == "/api/events/audit"
                return says(200, body(case.listed()[-10_000:]) if events else b"[]")

        self.environ = self.reading(
            Server(self).url,
            UPSTREAM_API_TOKEN="nbp_secret",
            REFRESH_INTERVALS="events=1s",
            EVENTS_FILE=str(self.file),
        )

    def listed(self) -> list[int]:
        return list(range(1, self.existing + 1))

    def writing(self) -> Running:
        """Start an exporter that writes the file."""
        return start(self, self.exporter, self.directory, self.environ)

    def written(self) -> bytes:
        return self.file.read_bytes() if self.file.exists() else b""

    def lines(self) -> int:
        return self.written().count(b"\n")


class KillTests(EventsTestCase):
    def listed(self) -> list[int]:
        """Two batches more than are written; some of the newest come late."""
        last = min(EVENTS, self.lines() + 200)
        late = {last - 1, last - 4} if last < EVENTS else set()
        return [number for number in range(1, last + 1) if number not in late]

    def test_kills(self) -> None:
        """Killed again and again, at random moments, it writes each event once."""
        chance = Random(24)
        for _ in range(KILLS):
            full = len(self.written())
            running = self.writing()
            end = time.monotonic() + chance.uniform(1, 5)
            while len(self.written()) <= full and time.monotonic() < end:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.04))
            running.kill()
        running = self.writing()
        until(lambda: self.lines() >= EVENTS, "all events", 600)
        running.stop()
        self.assertEqual(list(range(1, EVENTS + 1)), sorted(ids(self.written())))


class OperationTests(EventsTestCase):
    def test_hung_disk(self) -> None:
        """A disk that hangs keeps no program from its end, and no line is lost."""
        self.existing = 250
        code = (
            "import os, threading\n"
            "def hang(file):\n"
            "    if os.path.getsize('log.jsonl'):\n"
            "        os.write(2, b'hanging\\n')\n"
            "        threading.Event().wait()\n"
            "os.fsync = hang\n"
            "from api_exporter.cli import main\n"
            "main()\n"
        )
        command = [sys.executable, "-c", code]
        running = start(self, command, self.directory, self.environ)
        until(lambda: "hanging" in running.said(), "a disk that hangs")
        until(
            lambda: 'resource_up{resource="instance_version"} ' in self.page(),
            "other resources",
        )
        status, _ = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertIn("stopped", running.said())
        running = self.writing()
        until(lambda: self.lines() >= 250, "250 events")
        running.stop()
        self.assertEqual(list(range(1, 251)), ids(self.written()))

    def test_logrotate(self) -> None:
        """The shipped file for logrotate moves and compresses, and no line is lost."""
        logrotate = program("logrotate")
        shipped = (ROOT / "deploy/logrotate/api-exporter").read_text()
        shipped = shipped.replace("/var/log/api-exporter", str(self.directory))
        config = self.directory / "logrotate.conf"
        config.write_text(re.sub(r"^ *su .*\n", "", shipped, flags=re.MULTILINE))
        config.chmod(0o600)
        state = f"--state={self.directory / 'state'}"
        running = self.writing()
        for turn in range(1, 4):
            self.existing = 100 * turn
            until(lambda: self.lines() == 100, f"100 events more, {turn}")
            if turn < 3:
                command = [logrotate, "--force", state, str(config)]
                subprocess.run(command, check=True, timeout=60)
        running.stop()
        oldest = gzip.decompress(Path(f"{self.file}.2.gz").read_bytes())
        whole = oldest + Path(f"{self.file}.1").read_bytes() + self.written()
        self.assertEqual(list(range(1, 301)), ids(whole))

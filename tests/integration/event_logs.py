"""Files of events and of the access log, written by processes that are killed."""

import time
from pathlib import Path
from random import Random

from tests.integration.exporter import Answer, ExporterTestCase, Upstream, says
from tests.integration.programs import Running, start

TOKEN = "nbp_0canary0events0access0log0canary0001"


class EventLogTestCase(ExporterTestCase):
    """An upstream of which each answer is a method, and a file for the lines."""

    timeout = 1200
    setting = "EVENTS_FILE"

    def setUp(self) -> None:
        super().setUp()
        self.file = self.directory / "log.jsonl"
        case = self

        class Server(Upstream):
            def answer(self, path: str, authorization: str) -> Answer:  # noqa: ARG002
                return says(200, case.answer(path))

        self.upstream = Server(self).url

    def answer(self, target: str) -> bytes:
        """Return the body for a path with its query."""
        raise NotImplementedError

    def environ(self, **settings: str) -> dict[str, str]:
        return self.reading(self.upstream, UPSTREAM_API_TOKEN=TOKEN, **settings)

    def writing(self, **settings: str) -> Running:
        """Start an exporter that writes the file."""
        environ = self.environ(**{self.setting: str(self.file), **settings})
        return start(self, self.exporter, self.directory, environ)

    def written(self, path: Path | None = None) -> bytes:
        path = path or self.file
        return path.read_bytes() if path.exists() else b""

    def lines(self) -> int:
        return self.written().count(b"\n")

    def kill_writers(self, times: int, size: int, chance: Random) -> None:
        """Kill one exporter after the other, soon after each has written so much."""
        for _ in range(times):
            full = len(self.written()) + size
            running = self.writing()
            end = time.monotonic() + chance.uniform(1, 5)
            while len(self.written()) <= full and time.monotonic() < end:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.04))
            running.kill()

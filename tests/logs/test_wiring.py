"""The construction of an account's logs."""

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.audit_cursor import AuditCursor
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, format_time
from api_exporter.logs.sinks import FileSink, OutputSink, OwnedPaths
from api_exporter.logs.wiring import LogFactory
from api_exporter.ports import ResponseBody
from api_exporter.refresh.compute import compute_at_once
from api_exporter.settings.environment import read_settings
from api_exporter.settings.parsers import STANDARD_OUTPUT
from tests.inventories import inventory_of
from tests.logs.paging import Table
from tests.logs.shared import NOW
from tests.memory_reactor import MemoryReactorClock


class JournalsTests(SynchronousTestCase):
    def factory(self) -> LogFactory:
        return LogFactory(
            MemoryReactorClock(),  # type: ignore[arg-type]
            ThreadPool(),  # never starts: no file is written
            compute_at_once,
            lambda: NOW,
        )

    def test_sinks(self) -> None:
        """A log goes to its file, or to standard output."""
        for file, kind in ((Path("log"), FileSink), (STANDARD_OUTPUT, OutputSink)):
            sink = self.factory()._sink(AuditCursor(recent={}), file, Path("cursor"))
            self.assertIsInstance(sink, kind)

    def test_output(self) -> None:
        """All logs share one output, so that lines stay whole."""
        factory, found = self.factory(), set()
        for cursor in "ab":
            sink = factory._sink(AuditCursor(recent={}), STANDARD_OUTPUT, Path(cursor))
            assert isinstance(sink, OutputSink)
            found.add(sink._output)
        self.assertEqual(1, len(found))

    def test_paths(self) -> None:
        """One log at a time uses a file, by any path."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "link").symlink_to("cursor")
        in_use: set[Path] = set()
        logs = [
            OwnedPaths(in_use, folder / "cursor"),
            OwnedPaths(in_use, folder / "other"),
            OwnedPaths(in_use, folder / "log", folder / "link"),
        ]
        for log in logs[:2]:
            log.acquire()
            log.acquire()
        logs[2].release()
        with self.assertRaisesRegex(OSError, "an earlier write has not ended"):
            logs[2].acquire()
        logs[0].release()
        logs[2].acquire()

    def test_counted(self) -> None:
        """Without a file, rows are requested from the start time on, and counted."""
        settings = read_settings(
            {
                "UPSTREAM_API_URL": "https://netbird.example",
                "UPSTREAM_API_TOKEN": "nbp_token",
                "ACCESS_LOG_METRICS": "true",
            }
        )
        journals = self.factory()
        registry = CollectorRegistry()
        logs = journals.logs(
            settings.accounts[""], registry, Logger(), {"access_log": 10.0}
        )
        log = logs["access_log"]
        log.startService()
        table = Table()
        start = int(NOW) * NANOSECONDS_PER_SECOND
        table.add(1, start + 1)

        async def fetch(path: str, _: float) -> ResponseBody:
            return ResponseBody(table.answer(path.partition("?")[2]))

        self.successResultOf(
            Deferred.fromCoroutine(
                log.fetch(fetch, "events/proxy", 1.0, inventory_of())
            )
        )
        [query] = table.queries
        self.assertTrue(query.endswith(f"&start_date={format_time(start)}"), query)
        page = generate_latest(registry).decode()
        self.assertRegex(page, r"api_exporter_access_log_requests_total\{.*\} 1\.0")
        self.assertNotIn("lines", page)

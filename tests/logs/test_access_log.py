"""Requests for the access log of an account: their times, and failures."""

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.access_log import OPENING_TIMEOUT, REQUEST_INTERVAL, AccessLog
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, LogCursor
from api_exporter.logs.position import Position
from api_exporter.logs.sinks import NullSink
from api_exporter.ports import ResponseBody
from api_exporter.refresh.compute import compute_at_once
from api_exporter.telemetry.logs import AccessLogTelemetry
from tests import tries
from tests.inventories import inventory_of
from tests.logs.paging import START, Table


async def fetch(path: str, _: float) -> ResponseBody:
    """Fail: no request is expected."""
    raise AssertionError(path)


class AccessLogTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Start at the time of the first row."""
        self.clock = Clock()
        self.table = Table()
        self.registry = CollectorRegistry()
        self.log = self.access_log(NullSink(Position(start=0)))

    def access_log(self, sink: NullSink) -> AccessLog:
        log = AccessLog(
            account="",
            personal=frozenset(),
            sink=sink,
            compute=compute_at_once,
            telemetry=AccessLogTelemetry(self.registry, now=lambda: 7, writes=True),
            log=Logger("api_exporter.test"),
            now=lambda: START / NANOSECONDS_PER_SECOND + self.clock.seconds(),
            interval=10.0,
            clock=self.clock,
        )
        log.startService()
        return log

    def fetch(self) -> None:

        async def fetch(path: str, _: float) -> ResponseBody:
            return ResponseBody(self.table.answer(path.partition("?")[2]))

        asked = self.log.fetch(fetch, "events/proxy", 1.0, inventory_of())
        body = self.successResultOf(Deferred.fromCoroutine(asked))
        self.assertIn(b'{"data":[', body.data)

    def test_wanted(self) -> None:
        """During a backlog a request is due at once, later after an interval."""
        for one in range(150):
            self.table.add(one)
        self.clock.advance(1000.0)
        self.assertTrue(self.log.is_due())
        self.fetch()
        self.assertTrue(self.log.is_due())
        self.fetch()
        self.assertFalse(self.log.is_due())
        self.clock.advance(REQUEST_INTERVAL - 10.0)
        self.assertTrue(self.log.is_due())

    def test_pages(self) -> None:
        """After ten pages in a row, the log is read again two minutes later."""
        for pages, seconds, interval in ((10, 20.0, 30.0), (11, 150.0, 150.0)):
            self.setUp()
            self.clock.advance(10_000.0)
            for one in range(100 * pages - 50):
                self.table.add(one)
            self.fetch()
            while self.log.is_behind:
                self.fetch()
            self.assertEqual(pages, len(self.table.queries))
            self.assertEqual(interval, self.log.min_interval)
            self.clock.advance(seconds - 1.0)
            self.assertFalse(self.log.is_due(), pages)
            self.clock.advance(1.0)
            self.assertTrue(self.log.is_due(), pages)

    def test_busy(self) -> None:
        """Thirteen pages a minute need at most twenty requests."""
        rows = requests = 0
        minutes = tries(30)
        for second in range(1, 60 * minutes + 1):
            while rows < 1281 * second / 60:
                self.table.add(
                    rows, START + int(rows * 60 / 1281 * NANOSECONDS_PER_SECOND)
                )
                rows += 1
            self.clock.advance(1.0)
            if self.log.is_due():
                self.fetch()
                requests += 1
        self.assertLessEqual(requests, 20 * minutes)
        self.assertLess(len(self.table.queries), 60 * minutes)

    def test_cannot_begin(self) -> None:
        """No request is sent while the cursor cannot be read; a bug is logged."""
        no_disk = "cannot write to metrics only, not to a file: no disk"
        closed = "the files of the log cannot be opened"
        causes = (OSError(0, "no disk"), no_disk), (KeyError("defect"), closed)
        for cause, why in causes:

            class Broken(NullSink):
                async def load(self) -> tuple[LogCursor, list[bytes]]:
                    raise cause  # noqa: B023

            self.cannot_begin(Broken(Position(start=0)), why)
        self.assertEqual(1, len(self.flushLoggedErrors(KeyError)))

    def test_hung_disk(self) -> None:
        """A hanging disk delays a request for seconds; the opening is not repeated."""
        answer: Deferred[None] = Deferred()
        tries = []

        class Hung(NullSink):
            async def load(self) -> tuple[LogCursor, list[bytes]]:
                tries.append(1)
                await answer
                return await super().load()

        why = "the files of the log cannot be opened"
        self.cannot_begin(Hung(Position(start=0)), why)
        self.cannot_fetch(why)
        answer.callback(None)
        self.fetch()
        self.assertEqual(([1], []), (tries, self.clock.getDelayedCalls()))

    def cannot_begin(self, sink: NullSink, why: str) -> None:
        self.registry = CollectorRegistry()
        self.log = self.access_log(sink)
        self.cannot_fetch(why)

    def cannot_fetch(self, why: str) -> None:
        fetched = Deferred.fromCoroutine(self.log.fetch(fetch, "", 1.0, inventory_of()))
        self.clock.advance(OPENING_TIMEOUT)
        error = self.failureResultOf(fetched).value
        self.assertEqual(("log_file", True), (error.reason, error.unsent))
        self.assertEqual(why, str(error))

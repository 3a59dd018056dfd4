"""Claims about a single kind of log, and about standard output."""

import os
from collections.abc import Callable, Iterable
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from api_exporter.logs.audit_cursor import MAX_EVENTS, AuditCursor
from api_exporter.logs.journal import MAX_UNREADABLE, Journal
from api_exporter.logs.lines import event_line
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, LogRow, event_key
from api_exporter.logs.position import Position
from api_exporter.logs.sinks import PIPE_WRITE_BYTES, READER_TIMEOUT, Output, OutputSink
from tests.logs import body, shared
from tests.logs.paging import START, Table, number

T = TypeVar("T")


class AuditTestCase(shared.JournalTestCase):
    first = AuditCursor(recent={})

    def feed(self, journal: Journal, numbers: Iterable[int]) -> None:
        journal.receive(body(numbers))

    def number(self, id_: str) -> int:
        return int(id_)

    def logged(self, journal: Journal, *bodies: bytes) -> list[str]:
        with capturedLogs() as captured:
            for one in bodies:
                journal.receive(one)
        return [formatEvent(event) for event in captured]


class AuditFileTests(AuditTestCase, shared.FileTests):
    def test_missed(self) -> None:
        """A gap is logged and counted once, even if the file cannot be written."""
        journal = self.journal()
        journal.receive(body(range(1, 6)))
        moved = self.path.rename(f"{self.path}.1")
        self.path.mkdir()
        logged = self.logged(journal, *[body(range(100, 100 + MAX_EVENTS))] * 2)
        self.path.rmdir()
        self.assertEqual(2, len(logged))
        self.assertIn("audit events may be missing", logged[0])
        journal.receive(body(range(100, 100 + MAX_EVENTS)))
        self.assertEqual((1, [1, 2, 3, 4, 5]), (self.telemetry.gaps, self.ids(moved)))
        self.assertEqual(list(range(100, 100 + MAX_EVENTS)), self.ids())

    def test_behind(self) -> None:
        """A list that is behind is one gap, also for the next process."""
        journal = self.journal()
        for last in (51, 31):
            journal.receive(body(range(1, last)))
        self.journal().receive(body(range(1, 31)))
        self.assertEqual(1, self.telemetry.gaps)

    def test_too_long(self) -> None:
        """A very long event is written."""
        long = b'{"id":"7","meta":{"name":"' + b"x" * 9_000_000 + b'"}},'
        logged = self.logged(self.journal(), b"[" + long + body(range(1, 6))[1:])
        self.assertEqual([f"audit events go to {self.path}"], logged)
        self.assertEqual([1, 2, 3, 4, 5, 7], self.ids())
        self.assertEqual((6, 0), (self.telemetry.lines, self.telemetry.gaps))

    def test_cannot_be_told(self) -> None:
        """An event without a line is logged, and counted as missed."""

        class ThirdUnreadable(AuditCursor, frozen=True):
            @staticmethod
            def line(row: LogRow, account: str, personal: frozenset[str]) -> bytes:
                return b"" if row.id == "3" else event_line(row, account, personal)

        journal = self.journal(self.sink(first=ThirdUnreadable(recent={})))
        logged = self.logged(journal, body(range(1, 6)), body(range(1, 7)))
        self.assertEqual("audit event 3 is unreadable and is not written", logged[-1])
        self.assertEqual(("row of the access log", 2), (Position.row, len(logged)))
        self.assertEqual([1, 2, 4, 5, 6], self.ids())
        self.assertEqual((5, 1), (self.telemetry.lines, self.telemetry.gaps))

    def test_defect(self) -> None:
        """A bug is logged, and the next list is written."""
        journal = self.journal()
        journal.receive(None)  # type: ignore[arg-type]
        journal.receive(body([1]))
        broken = self.sink()
        broken.write = None  # type: ignore[method-assign,assignment]
        self.journal(broken).receive(body([1, 2]))
        self.assertEqual((2, [1]), (len(self.flushLoggedErrors(TypeError)), self.ids()))

    def test_one_at_a_time(self) -> None:
        """Only the newest list waits; a stop waits for the work in progress."""
        waiting: list[Deferred[None]] = []

        async def thread(work: Callable[[], T]) -> T:
            waiting.append(Deferred())
            await waiting[-1]
            return work()

        journal = self.journal(self.sink(thread))
        journal.receive(body(range(1, 201)))
        for last in (203, 202, 201):
            journal.receive(body(range(1, last)))
        self.assertEqual(1, len(waiting))
        waiting.pop(0).callback(None)
        stopped = journal.stopService()
        self.assertNoResult(stopped)
        while waiting:
            waiting.pop(0).callback(None)
        self.successResultOf(stopped)
        journal.receive(body(range(1, 300)))
        self.successResultOf(journal.stopService())
        self.assertEqual(list(range(1, 101)), self.ids())

    def test_stopped(self) -> None:
        """A stopped journal opens no file: the next one of this path would wait."""
        journal = self.journal()
        self.successResultOf(journal.stopService())
        opened = Deferred.fromCoroutine(journal.open_files())
        self.assertIsNone(self.successResultOf(opened))
        self.assertFalse(self.path.exists())


class AccessFileTests(shared.FileTests):
    first = Position(start=0)

    def feed(self, journal: Journal, numbers: Iterable[int]) -> None:
        """Pass the pages of these rows, until the position stays the same."""
        table, before = Table(numbers), None
        while True:
            opened = Deferred.fromCoroutine(journal.open_files())
            position = self.successResultOf(opened)
            if position is None:
                return
            assert isinstance(position, Position)
            if position.query == before:
                return
            before = position.query
            journal.receive(table.answer(position.query), position)

    def position(self, journal: Journal) -> Position:
        position = self.successResultOf(Deferred.fromCoroutine(journal.open_files()))
        assert isinstance(position, Position)
        return position

    def number(self, id_: str) -> int:
        return number(id_)

    def test_bad_rows(self) -> None:
        """An unreadable row does not stop the others, and is counted as missed."""
        journal = self.journal()
        table = Table([1, 5])
        table.add(2, timestamp="yesterday")
        table.add(3, timestamp="0001-01-01T00:00:00Z")
        table.add(4, path="DEEP")
        table.add(6, path="HALF")
        table.add(7, id="")
        table.add(8, id=7)
        table.add(9, timestamp=None)
        deep = b'{"a":' * 50_000 + b"[]" + b"}" * 50_000
        with capturedLogs() as captured:
            position = self.position(journal)
            answer = table.answer("sort_order=asc").replace(b'"DEEP"', deep)
            journal.receive(answer.replace(b"HALF", b"\\ud800"), position)
        self.assertEqual(([1, 5, 6], 6), (self.ids(), self.telemetry.gaps))
        self.assertIn(
            "unreadable rows of the access log are not written: 6",
            [formatEvent(event) for event in captured],
        )

    def test_unreadable_once(self) -> None:
        """An unreadable row is counted once, even with other pages in between."""
        journal = self.journal()
        pages = []
        for one in (1, 2):
            table = Table()
            table.add(one, id="")
            pages.append(table.answer("sort_order=asc"))
        for page in (*pages, *pages):
            journal.receive(page)
        self.assertEqual(2, self.telemetry.gaps)
        many = Table()
        for one in range(MAX_UNREADABLE):
            many.add(one, id="")
        for start in range(1, MAX_UNREADABLE // 100 + 1):
            journal.receive(many.answer(f"sort_order=asc&page_size=100&page={start}"))
        self.assertEqual(MAX_UNREADABLE, self.telemetry.gaps)
        for page, gaps in zip(pages, (0, 1), strict=True):  # the first makes room
            journal.receive(page)
            self.assertEqual(MAX_UNREADABLE + gaps, self.telemetry.gaps)

    def test_only_undated(self) -> None:
        """Reading continues after a page without readable times."""
        journal = self.journal()
        table = Table(range(1, 41))
        for one in range(100, 200):
            table.add(one, START, timestamp="yesterday")
        for _ in range(4):
            position = self.position(journal)
            journal.receive(table.answer(position.query), position)
        self.assertEqual(list(range(1, 41)), self.ids())

    def test_counted(self) -> None:
        """All rows are written; only rows of the last ten minutes are counted."""
        self.clock.advance(START / NANOSECONDS_PER_SECOND + 900.0 - shared.NOW + 700.0)
        journal = self.journal()
        self.feed(journal, range(600, 1500))
        self.feed(journal, range(600, 1501))
        self.assertEqual(list(range(600, 1501)), self.ids())
        self.assertEqual((501, 400), (len(self.telemetry.rows), self.telemetry.old))

    def test_behind(self) -> None:
        """`is_behind` is true while more pages follow."""
        journal = self.journal()
        table = Table(range(1, 151))
        for behind in (True, False):
            position = self.position(journal)
            journal.receive(table.answer(position.query), position)
            self.assertEqual(behind, journal.is_behind)
        self.assertEqual([True, False], [lag > 0 for lag in self.telemetry.lags])

    def test_lag_without_room(self) -> None:
        """The lag is the age of the oldest unwritten row on a full disk."""
        journal = self.journal()
        self.feed(journal, range(1, 51))
        with self.room(0):
            for passed in (60.0, 600.0):
                self.clock.advance(passed)
                self.feed(journal, range(1, 61))
        of_row_51 = shared.NOW - START / NANOSECONDS_PER_SECOND - 51.0
        lags = [of_row_51 + 60.0, of_row_51 + 660.0]
        self.assertEqual(lags, self.telemetry.lags[-2:])
        self.feed(journal, range(1, 61))
        self.assertEqual(0.0, self.telemetry.lags[-1])

    def test_lag_without_folder(self) -> None:
        """The lag grows from the first failed opening on."""
        self.folder.rmdir()
        journal = self.journal()
        for _ in range(3):
            self.feed(journal, [1])
            self.clock.advance(30.0)
        self.assertEqual([0.0, 30.0, 60.0], self.telemetry.lags)

    def test_other_page(self) -> None:
        """A page that was requested with an earlier position is dropped."""
        journal = self.journal()
        table = Table(range(1, 151))
        position = self.position(journal)
        for _ in range(2):
            journal.receive(table.answer(position.query), position)
        self.assertEqual(list(range(1, 101)), self.ids())
        following = self.position(journal)
        journal.receive(table.answer(following.query), following)
        self.assertEqual(list(range(1, 151)), self.ids())

    def test_idle(self) -> None:
        """Without new rows the position is saved once an hour."""
        journal = self.journal()
        self.feed(journal, range(1, 51))
        changes = set()
        for _ in range(180):
            self.clock.advance(60.0)
            self.feed(journal, range(1, 51))
            changes.add(self.cursor.stat().st_ino)
        self.assertLessEqual(len(changes), 4)
        self.assertEqual(list(range(1, 51)), self.ids())


class OutputTests(AuditTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.reader, writer = os.pipe()
        self.addCleanup(os.close, self.reader)
        self.addCleanup(os.close, writer)
        os.set_blocking(self.reader, False)
        self.output = Output(writer)
        self.got = b""

    def output_sink(self, cursor: Path | None = None) -> OutputSink:
        return OutputSink(
            AuditCursor(recent={}),
            self.output,
            cursor or self.cursor,
            in_thread=shared.run_here,
            in_use=set(),
            clock=self.clock,
        )

    def read(self) -> None:
        while True:
            try:
                self.got += os.read(self.reader, 1 << 16)
            except BlockingIOError:
                return

    def read_all(self) -> None:
        for _ in range(200):
            self.read()
            self.clock.advance(0.05)

    def received(self) -> list[int]:
        found = map(event_key, self.got.splitlines())
        return [int(one[0]) for one in found if one is not None]

    def test_stops_reading(self) -> None:
        """A stopped reader is logged, and later gets the lines it missed."""
        journal = self.journal(self.output_sink())
        with capturedLogs() as captured:
            for _ in range(2):
                journal.receive(body(range(1, 1001)))
                self.clock.pump([0.05] * int(READER_TIMEOUT / 0.05 + 3))
        logged = [formatEvent(event) for event in captured]
        self.assertEqual(2, len(logged))
        self.assertIn("no program reads standard output", logged[1])
        journal.receive(body(range(1, 1001)))
        self.read_all()
        self.assertEqual(list(range(1, 1001)), self.received())

    def test_reads_slowly(self) -> None:
        """A reader that empties the pipe every nine seconds is not a failure."""
        fcntl(self.reader, F_SETPIPE_SZ, PIPE_WRITE_BYTES)
        journal = self.journal(self.output_sink())
        journal.receive(body(range(1, 101)))
        for _ in range(20):
            self.clock.pump([0.05] * int((READER_TIMEOUT - 1.0) / 0.05))
            self.read()
        self.assertEqual(list(range(1, 101)), self.received())
        self.assertFalse(self.telemetry.failing)
        saved = self.cursor.stat().st_ino
        journal.receive(body(range(1, 101)))
        self.assertEqual(saved, self.cursor.stat().st_ino)

    def test_no_room_for_the_cursor(self) -> None:
        """An unsaved cursor is a failure, and the retry writes no line twice."""
        blocked = self.folder / "cursor.new"
        blocked.mkdir()
        journal = self.journal(self.output_sink())
        for is_failing in (True, False):
            journal.receive(body(range(1, 101)))
            self.read_all()
            self.assertIs(is_failing, self.telemetry.failing)
            self.assertEqual(not is_failing, self.cursor.exists())
            self.assertEqual(list(range(1, 101)), self.received())
            if is_failing:
                blocked.rmdir()

    def test_shared(self) -> None:
        """Two accounts write whole lines to one output."""
        sinks = [self.output_sink(self.folder / name) for name in ("a", "b")]
        journals = [self.journal(sink) for sink in sinks]
        for journal in journals:
            journal.receive(body(range(1, 501)))
        self.read_all()
        self.assertEqual(1000, len(self.got.splitlines()))
        self.assertEqual(sorted([*range(1, 501)] * 2), sorted(self.received()))

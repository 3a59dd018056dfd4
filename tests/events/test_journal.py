"""One list after the other: what is written, what waits, and what is said."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import Logger, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.events import journal as journal_module
from api_exporter.events.cursor import LISTED, Cursor
from api_exporter.events.journal import Journal
from api_exporter.events.listing import key
from api_exporter.events.output import Output
from api_exporter.events.sinks import PATIENCE, Sink, ToFile, ToOutput
from api_exporter.events.telling import line
from api_exporter.telemetry.events import EventsTelemetry
from tests.events import body, limited

T = TypeVar("T")

HOLE = 1 << 40
"""Bytes, of which a disk keeps none."""


async def at_once(steps: Generator[object, None, T]) -> T:
    """Run a generator to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def here(work: Callable[[], T]) -> T:
    """In this thread."""
    return work()


class JournalTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path = self.folder / "events.jsonl"
        self.cursor = self.folder / "cursor"
        self.registry = CollectorRegistry()
        self.telemetry = EventsTelemetry(self.registry)
        self.clock = Clock()

    def journal(self, sink: Sink | None = None) -> Journal:
        journal = Journal(
            account="acme",
            personal=frozenset(),
            sink=ToFile(self.path, self.cursor, here) if sink is None else sink,
            run=at_once,
            telemetry=self.telemetry,
            log=Logger("api_exporter.test"),
        )
        journal.startService()
        self.addCleanup(lambda: journal.running and journal.stopService())
        return journal

    def counted(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"api_exporter_audit_events_{name}_total")

    def ids(self, path: Path | None = None) -> list[int]:
        with (path or self.path).open("rb") as file:
            if file.seek(0, os.SEEK_END) > HOLE:
                file.seek(HOLE)
            else:
                file.seek(0)
            found = list(map(key, file))
        return [one[0] for one in found if one is not None]

    def said(self, journal: Journal, *bodies: bytes) -> list[str]:
        with capturedLogs() as captured:
            for one in bodies:
                journal.take(one)
        return [formatEvent(event) for event in captured]

    @contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Let the file grow by that much only, as on a disk that is full.

        It begins with a hole, so that no other file is as long as the limit.
        """
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.seek(HOLE)
            file.write(b"\n")
        with limited(HOLE + 1 + size):
            yield


class FileTests(JournalTestCase):
    def test_backlog(self) -> None:
        """At first all are written, oldest first; then what is new."""
        journal = self.journal()
        journal.take(body(range(1, 251)))
        self.assertEqual(list(range(1, 251)), self.ids())
        journal.take(body(range(1, 261)))
        self.assertEqual(list(range(1, 261)), self.ids())
        self.assertEqual((260, 0), (self.counted("written"), self.counted("missed")))

    def test_again(self) -> None:
        """Another process goes on where one has ended."""
        self.journal().take(body(range(1, 251)))
        self.journal().take(body(range(1, 261)))
        self.assertEqual(list(range(1, 261)), self.ids())

    def test_without_cursor(self) -> None:
        """Killed before the cursor was written, it knows its lines."""
        self.journal().take(body(range(1, 11)))
        self.cursor.unlink()
        self.journal().take(body(range(1, 12)))
        self.assertEqual(list(range(1, 12)), self.ids())

    def test_killed_twice(self) -> None:
        """Killed after each batch, before its cursor, it repeats none of them."""

        class Killed(ToFile):
            async def settle(self) -> None:
                if self.appended:
                    raise OSError(0, "killed")

            async def commit(self, lines: bytes, cursor: Cursor) -> None:
                await super().commit(lines, cursor)
                self.appended = True

            appended = False

        self.journal().take(body(range(1, 1501)))
        for _ in range(3):
            sink = Killed(self.path, self.cursor, here)
            self.journal(sink).take(body(range(1, 2001)))
        self.journal().take(body(range(1, 2001)))
        self.assertEqual(list(range(1, 2001)), self.ids())

    def test_lost_cursor(self) -> None:
        """Without its cursor, a long file is gone on with."""
        self.journal().take(body(range(1, 501)))
        self.cursor.unlink()
        self.journal().take(body(range(1, 511)))
        self.assertEqual(list(range(1, 511)), self.ids())

    def test_full_disk(self) -> None:
        """A full disk is told of once, and when it is over; nothing is lost."""
        journal = self.journal()
        with self.room(30_000):
            said = self.said(journal, body(range(1, 301)), body(range(1, 302)))
        self.assertEqual(
            [
                f"audit events go to {self.path}",
                f"cannot write audit events to {self.path}: File too large; they are"
                " kept by the upstream, and tried again",
            ],
            said,
        )
        self.assertEqual(list(range(1, 101)), self.ids())
        writable = "api_exporter_audit_events_writable"
        self.assertEqual(0, self.registry.get_sample_value(writable))
        said = self.said(journal, body(range(1, 303)))
        self.assertEqual(1, self.registry.get_sample_value(writable))
        self.assertEqual([f"audit events are written to {self.path} again"], said)
        self.assertEqual(list(range(1, 303)), self.ids())

    def test_no_room_for_the_cursor(self) -> None:
        """Lines wait for the cursor of those before them."""
        blocked = self.folder / "cursor.new"
        journal = self.journal()
        journal.take(b"[]")
        blocked.mkdir()
        for _ in range(3):
            journal.take(body(range(1, 301)))
        self.assertEqual(list(range(1, 101)), self.ids())
        blocked.rmdir()
        journal.take(body(range(1, 301)))
        self.assertEqual(list(range(1, 301)), self.ids())
        self.journal().take(body(range(1, 301)))
        self.assertEqual(list(range(1, 301)), self.ids())

    def test_moved(self) -> None:
        """After a move, or SIGHUP, lines go to a new file."""
        journal = self.journal()
        journal.take(body(range(1, 6)))
        moved = self.path.rename(f"{self.path}.1")
        journal.take(body(range(1, 8)))
        journal.look()
        journal.take(body(range(1, 9)))
        self.assertEqual([1, 2, 3, 4, 5], self.ids(moved))
        self.assertEqual([6, 7, 8], self.ids())

    def test_cannot_begin(self) -> None:
        """Where there is no folder yet, it is tried again."""
        self.folder.rmdir()
        journal = self.journal()
        said = self.said(journal, body([1]), body([1, 2]))
        self.assertEqual(1, len(said))
        self.assertIn("No such file or directory", said[0])
        self.folder.mkdir()
        journal.take(body([1, 2]))
        self.assertEqual([1, 2], self.ids())

    def test_cursor_that_is_none(self) -> None:
        """A cursor that cannot be used is told by its name, and nothing is written."""
        for path, content, why in (
            (self.cursor, "", "holds no cursor"),
            (self.cursor / "new", "", "Not a directory"),
        ):
            self.cursor.write_text(content)
            sink = ToFile(self.path, path, here)
            [said] = self.said(self.journal(sink), body([1]), body([1]))
            self.assertIn(f"cannot write audit events to {self.path}: {path}", said)
            self.assertIn(why, said)
        self.assertFalse(self.path.exists())

    def test_other_account(self) -> None:
        """The cursor of another account is told of, and what is later is written."""
        self.journal().take(body(range(1, 51)))
        self.path.unlink()
        journal = self.journal()
        said = self.said(journal, body(range(20, 90), era=1))
        self.assertIn("ids begin again", said[-1])
        self.assertEqual(list(range(20, 90)), self.ids())

    def test_missed(self) -> None:
        """A gap is said and counted once, though nothing can be written meanwhile."""
        journal = self.journal()
        journal.take(body(range(1, 6)))
        moved = self.path.rename(f"{self.path}.1")
        self.path.mkdir()
        said = self.said(journal, *[body(range(100, 100 + LISTED))] * 2)
        self.path.rmdir()
        self.assertEqual(2, len(said))
        self.assertIn("audit events may be missing", said[0])
        journal.take(body(range(100, 100 + LISTED)))
        self.assertEqual(1, self.counted("missed"))
        self.assertEqual([1, 2, 3, 4, 5], self.ids(moved))
        self.assertEqual(list(range(100, 100 + LISTED)), self.ids())

    def test_restored(self) -> None:
        """After a restored database what is new is written, by this and the next."""
        restored = body(range(1, 31))[:-1].replace(b"[", b", ", 1) + b"]"
        restored = body(range(31, 36), era=1)[:-1] + restored
        journal = self.journal()
        journal.take(body(range(1, 51)))
        journal.take(restored)
        self.assertEqual([*range(1, 51), *range(31, 36)], self.ids())
        self.journal().take(restored)
        self.assertEqual([*range(1, 51), *range(31, 36)], self.ids())
        self.assertEqual(1, self.counted("missed"))

    def test_bad_list(self) -> None:
        """What is no list is the refresh's to tell; the next one is read."""
        journal = self.journal()
        said = self.said(journal, b"{", body([1]))
        self.assertEqual([f"audit events go to {self.path}"], said)
        self.assertEqual([1], self.ids())

    def test_too_long(self) -> None:
        """One event of megabytes is lost, and told of once; the others are written."""
        long = b'{"id":"7","meta":{"name":"' + b"x" * 9_000_000 + b'"}},'
        journal = self.journal()
        with_it = (b"[" + long + body(range(1, last))[1:] for last in (6, 7, 8))
        said = self.said(journal, *with_it)
        self.assertEqual(
            [
                f"audit events go to {self.path}",
                "1 audit events cannot be read, and are lost",
            ],
            said,
        )
        self.assertEqual(list(range(1, 8)), self.ids())
        self.assertEqual((7, 1), (self.counted("written"), self.counted("missed")))

    def test_cannot_be_told(self) -> None:
        """An event that makes no line is told of, and counted as lost."""
        self.patch(
            journal_module,
            "line",
            lambda event, *rest: b"" if event.id == 3 else line(event, *rest),
        )
        said = self.said(self.journal(), body(range(1, 6)), body(range(1, 7)))
        self.assertEqual("the audit event 3 cannot be told, and is lost", said[-1])
        self.assertEqual(2, len(said))
        self.assertEqual([1, 2, 4, 5, 6], self.ids())
        self.assertEqual((5, 1), (self.counted("written"), self.counted("missed")))

    def test_defect(self) -> None:
        """A defect is told, and the next list is read."""
        journal = self.journal()
        journal.take(None)  # type: ignore[arg-type]
        journal.take(body([1]))
        broken = ToFile(self.path, self.cursor, here)
        broken.settle = None  # type: ignore[method-assign,assignment]
        self.journal(broken).take(body([1]))
        self.assertEqual(1, len(self.flushLoggedErrors(TypeError)))
        self.assertEqual([1], self.ids())

    def test_one_at_a_time(self) -> None:
        """While one list is written, the newest of the others waits; a stop waits."""
        waiting: list[Deferred[None]] = []

        async def thread(work: Callable[[], T]) -> T:
            waiting.append(Deferred())
            await waiting[-1]
            return work()

        journal = self.journal(ToFile(self.path, self.cursor, thread))
        journal.take(body(range(1, 201)))
        for last in (203, 202, 201):
            journal.take(body(range(1, last)))
        waiting.pop(0).callback(None)
        journal.look()  # as SIGHUP does, in the middle
        stopped = journal.stopService()
        self.assertNoResult(stopped)
        while waiting:
            waiting.pop(0).callback(None)
        self.successResultOf(stopped)
        journal.take(body(range(1, 300)))
        self.successResultOf(journal.stopService())


class OutputTests(JournalTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.reader, writer = os.pipe()
        self.addCleanup(os.close, self.reader)
        self.addCleanup(os.close, writer)
        os.set_blocking(self.reader, False)
        self.output = Output(writer)
        self.got = b""

    def sink(self) -> ToOutput:
        return ToOutput(self.output, self.cursor, here, self.clock)

    def read(self) -> None:
        while True:
            try:
                self.got += os.read(self.reader, 1 << 16)
            except BlockingIOError:
                return

    def told(self) -> list[int]:
        found = map(key, self.got.splitlines())
        return [one[0] for one in found if one is not None]

    def test_reads(self) -> None:
        """A slow reader gets all, once each, and so does the next process's."""
        for last in (1001, 1011):
            journal = self.journal(self.sink())
            journal.take(body(range(1, last)))
            for _ in range(200):
                self.read()
                self.clock.advance(0.05)
        self.assertEqual(list(range(1, 1011)), self.told())
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_stops_reading(self) -> None:
        """A reader that stops is told of, and gets what it missed."""
        journal = self.journal(self.sink())
        with capturedLogs() as captured:
            for _ in range(2):
                journal.take(body(range(1, 1001)))
                self.clock.pump([0.05] * int(PATIENCE / 0.05 + 3))
        said = [formatEvent(event) for event in captured]
        self.assertEqual(2, len(said))
        self.assertIn("nobody reads it", said[1])
        journal.take(body(range(1, 1001)))
        for _ in range(200):
            self.read()
            self.clock.advance(0.05)
        self.assertEqual(list(range(1, 1001)), self.told())

    def test_shared(self) -> None:
        """Two accounts write whole lines to one output."""
        journals = []
        for name in ("a", "b"):
            cursor = self.folder / name
            sink = ToOutput(self.output, cursor, here, self.clock)
            journals.append(self.journal(sink))
        for journal in journals:
            journal.take(body(range(1, 501)))
        for _ in range(200):
            self.read()
            self.clock.advance(0.05)
        self.assertEqual(1000, len(self.got.splitlines()))
        self.assertEqual(sorted([*range(1, 501)] * 2), sorted(self.told()))
        journals[0].look()

"""What holds for both logs: what is written, what waits, and what is said."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from twisted.internet.task import Clock
from twisted.logger import Logger, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.events.choice import C
from api_exporter.events.journal import Journal
from api_exporter.events.kinds import Kind
from api_exporter.events.listing import SECOND, Id
from api_exporter.events.sinks import Sink, ToFile
from api_exporter.refresh.compute import compute_at_once
from tests.events import limited
from tests.events.paging import START

T = TypeVar("T")

HOLE = 1 << 40
"""Bytes, of which a disk keeps none."""

NOW = START / SECOND + 100_000.0
"""Seconds since the epoch: long after all rows."""


async def here(work: Callable[[], T]) -> T:
    """In this thread."""
    return work()


class Told:
    """What a journal tells of its work."""

    def __init__(self) -> None:
        self.lines = self.gaps = self.skipped = self.old = 0
        self.failing = False
        self.rows: list[bytes] = []
        self.lags: list[float] = []

    def written(self, lines: int) -> None:
        """So many lines."""
        self.lines += lines

    def missed(self, gaps: int = 1) -> None:
        """So many gaps."""
        self.gaps += gaps

    def writable(self, writable: bool) -> None:
        """Whether it works."""
        self.failing = not writable

    def took(self, rows: Iterable[bytes], old: int) -> None:
        """Rows to be counted, and how many are too old for it."""
        self.rows += rows
        self.old += old

    def read(self, lag: float, skipped: int) -> None:
        """A list is done with."""
        self.lags.append(lag)
        self.skipped += skipped


class JournalTestCase(SynchronousTestCase, Generic[C, Id]):
    """A log in a folder of its own."""

    kind: Kind[C, Id]

    def setUp(self) -> None:
        """An empty folder."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path = self.folder / "events.jsonl"
        self.cursor = self.folder / "cursor"
        self.telemetry = Told()
        self.clock = Clock()

    def feed(self, journal: Journal[C, Id], numbers: Iterable[int]) -> None:
        """Let it read all of an upstream that lists these."""
        raise NotImplementedError

    def number(self, id_: Id) -> int:
        """Which one that is."""
        raise NotImplementedError

    def journal(
        self, sink: Sink[C] | None = None, kind: Kind[C, Id] | None = None
    ) -> Journal[C, Id]:
        """One that runs."""
        file = ToFile(self.kind, self.path, self.cursor, here, "acme")
        journal = Journal(
            kind or self.kind,
            account="acme",
            personal=frozenset(),
            sink=file if sink is None else sink,
            compute=compute_at_once,
            telemetry=self.telemetry,
            log=Logger("api_exporter.test"),
            now=lambda: NOW + self.clock.seconds(),
        )
        journal.startService()
        self.addCleanup(lambda: journal.running and journal.stopService())
        return journal

    def ids(self, path: Path | None = None) -> list[int]:
        """Of the lines of a file."""
        with (path or self.path).open("rb") as file:
            if file.seek(0, os.SEEK_END) > HOLE:
                file.seek(HOLE)
            else:
                file.seek(0)
            found = list(map(self.kind.key, file))
        return [self.number(one[0]) for one in found if one is not None]

    def said(self, journal: Journal[C, Id], *lists: Iterable[int]) -> list[str]:
        """What it logs of these lists."""
        with capturedLogs() as captured:
            for one in lists:
                self.feed(journal, one)
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


class FileTests(JournalTestCase[C, Id]):
    """What a file gets, whatever happens."""

    def test_backlog(self) -> None:
        """At first all are written, oldest first; then what is new."""
        journal = self.journal()
        self.feed(journal, range(1, 251))
        self.assertEqual(list(range(1, 251)), self.ids())
        self.feed(journal, range(1, 261))
        self.assertEqual(list(range(1, 261)), self.ids())
        self.assertEqual((260, 0), (self.telemetry.lines, self.telemetry.gaps))

    def test_again(self) -> None:
        """Another process goes on where one has ended."""
        self.feed(self.journal(), range(1, 251))
        self.feed(self.journal(), range(1, 261))
        self.assertEqual(list(range(1, 261)), self.ids())

    def test_without_cursor(self) -> None:
        """Killed before the cursor was written, it knows its lines."""
        self.feed(self.journal(), range(1, 11))
        self.cursor.unlink()
        self.feed(self.journal(), range(1, 12))
        self.assertEqual(list(range(1, 12)), self.ids())

    def test_killed_twice(self) -> None:
        """Killed after each batch, before its cursor, it repeats none of them."""

        class Killed(ToFile[C, Id]):
            async def settle(self) -> None:
                if self.appended:
                    raise OSError(0, "killed")

            async def commit(self, lines: bytes, cursor: C) -> None:
                await super().commit(lines, cursor)
                self.appended = True

            appended = False

        self.feed(self.journal(), range(1, 1501))
        for _ in range(3):
            sink = Killed(self.kind, self.path, self.cursor, here, "acme")
            self.feed(self.journal(sink), range(1, 2001))
        self.feed(self.journal(), range(1, 2001))
        self.assertEqual(list(range(1, 2001)), self.ids())

    def test_lost_cursor(self) -> None:
        """Without its cursor, a long file is gone on with."""
        self.feed(self.journal(), range(1, 501))
        self.cursor.unlink()
        self.feed(self.journal(), range(1, 511))
        self.assertEqual(list(range(1, 511)), self.ids())

    def test_full_disk(self) -> None:
        """A full disk is told of once, and when it is over; nothing is lost."""
        journal = self.journal()
        with self.room(30_000):
            said = self.said(journal, range(1, 301), range(1, 302))
        self.assertEqual(
            [
                f"{self.kind.rows} go to {self.path}",
                f"cannot write {self.kind.rows} to {self.path}: File too large;"
                " NetBird keeps them, and the exporter retries",
            ],
            said,
        )
        self.assertEqual(list(range(1, 101)), self.ids())
        self.assertTrue(self.telemetry.failing)
        said = self.said(journal, range(1, 303))
        self.assertFalse(self.telemetry.failing)
        self.assertEqual([f"{self.kind.rows} are written to {self.path} again"], said)
        self.assertEqual(list(range(1, 303)), self.ids())

    def test_no_room_for_the_cursor(self) -> None:
        """Lines wait for the cursor of those before them."""
        blocked = self.folder / "cursor.new"
        journal = self.journal()
        self.feed(journal, ())
        blocked.mkdir()
        for _ in range(3):
            self.feed(journal, range(1, 301))
        self.assertEqual(list(range(1, 101)), self.ids())
        blocked.rmdir()
        self.feed(journal, range(1, 301))
        self.assertEqual(list(range(1, 301)), self.ids())
        self.feed(self.journal(), range(1, 301))
        self.assertEqual(list(range(1, 301)), self.ids())

    def test_moved(self) -> None:
        """After a move, or SIGHUP, lines go to a new file."""
        journal = self.journal()
        self.feed(journal, range(1, 6))
        moved = self.path.rename(f"{self.path}.1")
        self.feed(journal, range(1, 8))
        journal.look()
        self.feed(journal, range(1, 9))
        self.assertEqual([1, 2, 3, 4, 5], self.ids(moved))
        self.assertEqual([6, 7, 8], self.ids())

    def test_cannot_begin(self) -> None:
        """Where there is no folder yet, it is tried again."""
        self.folder.rmdir()
        journal = self.journal()
        said = self.said(journal, [1], [1, 2])
        self.assertEqual(1, len(said))
        self.assertIn("No such file or directory", said[0])
        self.folder.mkdir()
        self.feed(journal, [1, 2])
        self.assertEqual([1, 2], self.ids())

    def test_cursor_that_is_none(self) -> None:
        """A cursor that cannot be used is told by its name, and nothing is written."""
        for path, content, why in (
            (self.cursor, "", "does not contain a cursor"),
            (self.cursor / "new", "", "Not a directory"),
        ):
            self.cursor.write_text(content)
            sink = ToFile(self.kind, self.path, path, here, "acme")
            [said] = self.said(self.journal(sink), [1], [1])
            self.assertIn(f"cannot write {self.kind.rows} to {self.path}: {path}", said)
            self.assertIn(why, said)
        self.assertFalse(self.path.exists())

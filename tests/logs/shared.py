"""Claims about both logs: files, retries and log lines."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from errno import EIO, EROFS
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from twisted.internet.task import Clock
from twisted.logger import Logger, capturedLogs, formatEvent
from twisted.python.monkey import MonkeyPatcher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.journal import Journal
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, LogCursor
from api_exporter.logs.sinks import FileSink, InThread, Sink
from api_exporter.refresh.compute import compute_at_once
from simulation.disk import Disk
from tests import tries
from tests.logs import limited
from tests.logs.paging import START

T = TypeVar("T")

HOLE = 1 << 40
"""Bytes of a hole in a sparse file."""

NOW = START / NANOSECONDS_PER_SECOND + 100_000.0
"""A time long after all rows, in seconds since the epoch."""


async def run_here(work: Callable[[], T]) -> T:
    """Run work in this thread."""
    return work()


_close = os.close


def _close_and_fail(file: int) -> None:
    _close(file)
    raise OSError(EIO, os.strerror(EIO))


class JournalMetrics:
    """The metrics of a journal."""

    def __init__(self) -> None:
        self.lines = self.gaps = self.skipped = self.old = 0
        self.failing = False
        self.rows: list[bytes] = []
        self.lags: list[float] = []

    def written(self, lines: int) -> None:
        self.lines += lines

    def missed(self, gaps: int = 1) -> None:
        self.gaps += gaps

    def writable(self, writable: bool) -> None:
        self.failing = not writable

    def count_recent_rows(self, rows: Iterable[bytes], old: int) -> None:
        self.rows += rows
        self.old += old

    def record_progress(self, lag: float, skipped: int) -> None:
        self.lags.append(lag)
        self.skipped += skipped


class JournalTestCase(SynchronousTestCase):
    """A log in a folder of its own."""

    first: LogCursor

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path = self.folder / "events.jsonl"
        self.cursor = self.folder / "cursor"
        self.telemetry = JournalMetrics()
        self.clock = Clock()

    def feed(self, journal: Journal, numbers: Iterable[int]) -> None:
        """Pass all lists of an upstream with these rows to a journal."""
        raise NotImplementedError

    def number(self, id_: str) -> int:
        raise NotImplementedError

    def sink(
        self,
        thread: InThread = run_here,
        cursor: Path | None = None,
        first: LogCursor | None = None,
    ) -> FileSink:
        return FileSink(
            first or self.first,
            self.path,
            cursor or self.cursor,
            in_thread=thread,
            in_use=set(),
        )

    def journal(self, sink: Sink | None = None) -> Journal:
        journal = self.process(sink or self.sink())
        self.addCleanup(lambda: journal.running and journal.stopService())
        return journal

    def process(self, sink: Sink) -> Journal:
        """Return a journal that a test may kill: it needs no end."""
        journal = Journal(
            account="acme",
            personal=frozenset(),
            sink=sink,
            compute=compute_at_once,
            telemetry=self.telemetry,
            log=Logger("api_exporter.test"),
            now=lambda: NOW + self.clock.seconds(),
        )
        journal.startService()
        return journal

    def ids(self, path: Path | None = None) -> list[int]:
        """Return the numbers of the rows in a file."""
        with (path or self.path).open("rb") as file:
            if file.seek(0, os.SEEK_END) > HOLE:
                file.seek(HOLE)
            else:
                file.seek(0)
            found = list(map(self.first.key, file))
        return [self.number(one[0]) for one in found if one is not None]

    def logged_for(self, journal: Journal, *lists: Iterable[int]) -> list[str]:
        """Return the log lines for some lists."""
        with capturedLogs() as captured:
            for one in lists:
                self.feed(journal, one)
        return [formatEvent(event) for event in captured]

    @contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Let the file grow by some bytes only, as on a full disk.

        It begins with a hole, so no other file is as long as the limit.
        """
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.seek(HOLE)
            file.write(b"\n")
        with limited(HOLE + 1 + size):
            yield


class FileTests(JournalTestCase):
    """Each row is in the file once, after crashes, moves and a full disk."""

    def test_backlog(self) -> None:
        """All rows are written once, oldest first; a stop closes the file."""
        journal = self.journal()
        self.feed(journal, range(1, 251))
        self.assertEqual(list(range(1, 251)), self.ids())
        self.feed(journal, range(1, 261))
        self.assertEqual(list(range(1, 261)), self.ids())
        self.assertEqual((260, 0), (self.telemetry.lines, self.telemetry.gaps))
        with MonkeyPatcher((os, "close", _close_and_fail)):
            self.successResultOf(journal.stopService())
        opened = [f for f in Path("/proc/self/fd").iterdir() if f.exists()]
        self.assertFalse([file for file in opened if file.samefile(self.path)])

    def test_without_cursor(self) -> None:
        """The next process continues after the last row, with a cursor or without."""
        for last in (1, 10, 500):
            self.feed(self.journal(), range(1, last + 1))
            self.cursor.unlink()
            self.feed(self.journal(), range(1, last + 10))
            self.feed(self.journal(), range(1, last + 11))
            self.assertEqual(list(range(1, last + 11)), self.ids())

    def test_histories(self) -> None:
        """No kill at any byte, full disk or rotation loses, doubles or cuts a row."""
        for seed in range(tries(40)):
            self.setUp()
            chance = Random(seed)
            disk = Disk(self.folder, chance)

            async def thread(work: Callable[[], T], disk: Disk = disk) -> T:
                result: T = disk.run(work)
                return result

            last, journal = 0, None
            with disk.watched():
                for turn in range(20):
                    if journal is None:
                        journal = self.process(self.sink(thread))
                    last += chance.choice((0, 1, 30, 250))
                    disk.full = turn < 19 and chance.random() < 0.3
                    killed = turn < 18 and chance.random() < 0.6
                    if killed:
                        disk.kill(chance.choice(("", "events")))
                    self.feed(journal, range(1, last + 1))
                    if killed:
                        disk.close_all()
                        journal = None
                    if self.path.exists() and chance.random() < 0.3:
                        self.path.rename(f"{self.path}.{turn}")
            files = sorted(self.folder.glob("events.jsonl*"))
            texts = [path.read_bytes() for path in files]
            found = [one for path in files for one in self.ids(path)]
            self.assertEqual(Counter(range(1, last + 1)), Counter(found), seed)
            self.assertEqual(last, sum(map(len, map(bytes.splitlines, texts))), seed)
            self.assertFalse([text for text in texts if text[-1:] not in b"\n"])

    def test_full_disk(self) -> None:
        """A full disk is logged at its beginning and end, and no row is lost."""
        journal = self.journal()
        with self.room(30_000):
            logged = self.logged_for(journal, range(1, 301), range(1, 302))
        self.assertEqual(
            [
                f"{self.first.rows} go to {self.path}",
                f"cannot write {self.first.rows} to {self.path}: File too large;"
                " NetBird keeps them, and the exporter retries",
            ],
            logged,
        )
        self.assertEqual(list(range(1, 101)), self.ids())
        self.assertTrue(self.telemetry.failing)
        logged = self.logged_for(journal, range(1, 303))
        self.assertFalse(self.telemetry.failing)
        self.assertEqual(
            [f"{self.first.rows} are written to {self.path} again"], logged
        )
        self.assertEqual(list(range(1, 303)), self.ids())
        counted = len(self.telemetry.rows) + self.telemetry.old
        self.assertEqual((302, 302), (self.telemetry.lines, counted))

    def test_bad_list(self) -> None:
        """An invalid list is not logged here, and the next list is written."""
        journal = self.journal()
        with capturedLogs() as captured:
            for bad in (b"{", b'{"data":3}', b"[3"):
                journal.receive(bad)
            self.feed(journal, [1])
        logged = [formatEvent(event) for event in captured]
        self.assertEqual([f"{self.first.rows} go to {self.path}"], logged)
        self.assertEqual([1], self.ids())

    def test_no_room_for_the_cursor(self) -> None:
        """Rows wait until their cursor can be saved."""
        blocked = self.folder / "cursor.new"
        journal = self.journal()
        self.feed(journal, ())
        blocked.mkdir()
        for _ in range(3):
            self.feed(journal, range(1, 301))
        self.assertEqual([], self.ids())
        blocked.rmdir()
        self.feed(journal, range(1, 301))
        self.assertEqual(list(range(1, 301)), self.ids())
        self.feed(self.journal(), range(1, 301))
        self.assertEqual(list(range(1, 301)), self.ids())

    def test_cannot_begin(self) -> None:
        """A missing folder is logged once, and the next list is a retry."""
        self.folder.rmdir()
        journal = self.journal()
        logged = self.logged_for(journal, [1], [1, 2])
        self.assertEqual(1, len(logged))
        self.assertIn("No such file or directory", logged[0])
        self.folder.mkdir()
        self.feed(journal, [1, 2])
        self.assertEqual([1, 2], self.ids())

    def test_sandbox(self) -> None:
        """Under a systemd unit, a read-only file system names the two ways out."""
        open_ = os.open
        read_only = OSError(EROFS, os.strerror(EROFS), str(self.path))

        def refuse(path: Path, *rest: Any, **more: Any) -> int:
            if path == self.path:
                raise read_only
            return open_(path, *rest, **more)

        self.patch(os, "open", refuse)
        hint = (
            " (the unit's sandbox: choose a file in /var/log/x, or add"
            f" ReadWritePaths={self.path.parent} to the unit)"
        )
        for environ, words in (({}, ""), ({"LOGS_DIRECTORY": "/var/log/x"}, hint)):
            self.patch(os, "environ", environ)
            [logged] = self.logged_for(self.journal(), [1])
            self.assertIn(f"{self.path}: Read-only file system{words};", logged)

    def test_cursor_that_is_none(self) -> None:
        """An unusable cursor file is named in the log, and no row is written."""
        for path, content, why in (
            (self.cursor, "", "does not contain a cursor"),
            (self.cursor / "new", "", "Not a directory"),
        ):
            self.cursor.write_text(content)
            [logged] = self.logged_for(self.journal(self.sink(cursor=path)), [1], [1])
            self.assertIn(
                f"cannot write {self.first.rows} to {self.path}: {path}", logged
            )
            self.assertIn(why, logged)
        self.assertFalse(self.path.exists())

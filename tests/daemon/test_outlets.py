"""Log lines to a reader that may be slow or closed."""

import os
import socket
from errno import ENOSPC
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon.outlets import MAX_WRITE_BYTES, LogFile, Stream
from tests.logbook import logbook

LINE = "x" * 99 + "\n"


class StreamTests(SynchronousTestCase):
    """Writes to blocking descriptors: a write that blocks would hang a test."""

    def pipe(self) -> tuple[int, int]:
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        return reader, writer

    def full(self, stream: Stream, line: str = LINE) -> int:
        """Return the number of lines that were accepted before one was not."""
        for taken in range(100_000):
            if not stream.write(line):
                return taken
        raise AssertionError("somebody takes them all")

    def test_full(self) -> None:
        """A full pipe accepts no lines until its reader reads."""
        reader, writer = self.pipe()
        stream = Stream(writer)
        self.assertTrue(stream.write("añ\udcff\n"))
        self.assertEqual("añ\\udcff\n".encode(), os.read(reader, 100))
        self.assertGreater(self.full(stream), 100)
        self.assertFalse(stream.write(LINE))
        os.read(reader, 1_000_000)
        self.assertTrue(stream.write(LINE))
        self.assertEqual(LINE.encode(), os.read(reader, 1000))
        os.close(reader)

    def test_torn(self) -> None:
        """A line of which only a part was accepted is ended before the next one."""
        reader, writer = self.pipe()
        stream = Stream(writer)
        long = "y" * 1_000_000 + "\n"
        self.assertFalse(stream.write(long))
        self.assertFalse(stream.write(LINE))
        self.assertTrue(os.read(reader, 1_000_000).endswith(b"y"))
        self.assertTrue(stream.write(LINE))
        self.assertTrue(stream.write(LINE))
        self.assertEqual(f"\n{LINE}{LINE}".encode(), os.read(reader, 1_000_000))
        os.close(reader)

    def test_gone(self) -> None:
        """A closed reader accepts nothing, and is no error."""
        reader, writer = self.pipe()
        os.close(reader)
        stream = Stream(writer)
        self.assertEqual([False] * 2, [stream.write(LINE) for _ in range(2)])

    def test_others(self) -> None:
        """A socket or a terminal that is not read accepts no more."""
        ours, theirs = socket.socketpair()
        self.addCleanup(theirs.close)
        terminal, window = os.openpty()
        self.addCleanup(os.close, terminal)
        for descriptor, line in (
            (ours.detach(), "z" * 2 * MAX_WRITE_BYTES + "\n"),
            (window, LINE),
        ):
            self.addCleanup(os.close, descriptor)
            self.assertGreater(self.full(Stream(descriptor), line), 0)
            self.assertTrue(os.get_blocking(descriptor))

    def test_journal(self) -> None:
        """The journal is recognized by device and inode."""
        reader, writer = self.pipe()
        self.addCleanup(os.close, reader)
        file, stream = os.fstat(writer), Stream(writer)
        own = f"{file.st_dev}:{file.st_ino}"
        for name, expected in ((own, True), (f"{own}1", False), ("", False)):
            self.assertEqual(expected, stream.is_journal({"JOURNAL_STREAM": name}))
        self.assertFalse(stream.is_journal({}))
        self.assertFalse(Stream(10_000).is_journal({}))


class LogFileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp()).absolute()
        self.file: LogFile = LogFile.fromFullPath(str(self.path))
        self.addCleanup(self.file.close)
        self.moved = self.path.with_suffix(".old")

    def test_moved(self) -> None:
        """A file that was moved or replaced is opened again."""
        for before in ("", "theirs\n"):
            self.assertTrue(self.file.write("a\n"))
            self.path.rename(self.moved)
            if before:
                self.path.write_text(before)
            self.file.renew()
            self.assertTrue(self.file.write("b\n"))
            self.assertTrue(self.moved.read_text().endswith("a\n"))
            self.assertEqual(f"{before}b\n", self.path.read_text())

    def test_truncated(self) -> None:
        """A file that another program has truncated is continued at its new end."""
        self.file.write("a\n")
        os.truncate(self.path, 0)
        self.file.write("b\n")
        self.assertEqual(b"b\n", self.path.read_bytes())

    def test_in_place(self) -> None:
        """A file that was not moved is rotated."""
        self.file.write("a\n")
        self.file.renew()
        self.file.write("b\n")
        self.assertEqual("b\n", self.path.read_text())
        self.assertEqual("a\n", Path(f"{self.path}.1").read_text())

    def test_cannot_rotate(self) -> None:
        """If a rotation fails, lines go to the open file, or to one opened later."""
        self.file.rotateLength, self.file.maxRotatedFiles = 4, 1
        rotated = Path(f"{self.path}.1")
        rotated.mkdir()  # which cannot be removed as a file
        for line in ("a\n", "bb\n", "c\n"):
            self.assertTrue(self.file.write(line))
        self.assertEqual("a\nbb\nc\n", self.path.read_text())
        rotated.rmdir()

        def fail() -> None:
            raise OSError(ENOSPC, "No space left on device")

        full = self.patch(self.file, "_openFile", fail)
        self.assertEqual([False] * 2, [self.file.write("d\n") for _ in range(2)])
        full.restore()
        self.assertTrue(self.file.write("e\n"))
        self.assertEqual("e\n", self.path.read_text())

    def test_cannot_be_opened(self) -> None:
        """If no file can be opened, lines go to the open one, with a warning."""
        book = logbook(self)
        self.file.write("a\n")
        self.path.rename(self.moved)
        self.path.mkdir()
        self.file.reopen()
        self.assertTrue(self.file.write("b\n"))
        self.assertEqual("a\nb\n", self.moved.read_text())
        line = "warning cannot reopen the log file: Is a directory"
        self.assertEqual([line], book.lines())

    def test_pipe(self) -> None:
        """A pipe in the place of the file gets no line: its reader may be slow."""
        book = logbook(self)
        self.path.rename(self.moved)
        os.mkfifo(self.path)
        self.file.reopen()
        self.assertTrue(self.file.write("a\n"))
        self.assertEqual("a\n", self.moved.read_text())
        line = "warning cannot reopen the log file: Illegal seek"
        self.assertEqual([line], book.lines())

    def test_no_folder(self) -> None:
        """A folder that is a file now cannot be read: lines go to the open file."""
        book, folder = logbook(self), Path(self.mktemp()).absolute()
        folder.mkdir()
        file: LogFile = LogFile.fromFullPath(str(folder / "log"))
        self.addCleanup(file.close)
        folder.rename(self.moved)
        folder.touch()
        file.renew()
        self.assertTrue(file.write("a\n"))
        self.assertEqual("a\n", (self.moved / "log").read_text())
        line = "warning cannot reopen the log file: Not a directory"
        self.assertEqual([line], book.lines())

    def test_full_disk(self) -> None:
        """A full disk accepts nothing, and no part of a line."""
        before = getrlimit(RLIMIT_FSIZE)
        setrlimit(RLIMIT_FSIZE, (5, before[1]))
        try:
            accepted = [self.file.write("one\n"), self.file.write("two\n")]
        finally:
            setrlimit(RLIMIT_FSIZE, before)
        self.assertEqual([True, False], accepted)
        self.file.write("three\n")
        self.assertEqual("one\nthree\n", self.path.read_text())
        file: LogFile = LogFile.fromFullPath("/dev/full")
        self.addCleanup(file.close)
        self.assertFalse(file.write("a\n"))
        full = os.open("/dev/full", os.O_WRONLY)
        self.addCleanup(os.close, full)
        self.assertFalse(Stream(full).write(LINE))

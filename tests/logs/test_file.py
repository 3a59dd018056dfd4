"""Files of lines after a crash, a full disk and a move."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.python.monkey import MonkeyPatcher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.audit_cursor import MAX_IDS, AuditCursor
from api_exporter.logs.file import CursorFile, LinesFile, Place, Saved
from api_exporter.logs.lines import event_line, row_line
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, LogCursor
from api_exporter.logs.position import Position
from tests import THOROUGH
from tests.logs import events, keys, limited
from tests.logs.paging import START, Table

NONE = frozenset[str]()
NOTHING = AuditCursor(recent={})

HOLDING = """
import sys
from pathlib import Path
from api_exporter.logs.file import LinesFile
from api_exporter.logs.audit_cursor import AuditCursor
LinesFile(AuditCursor(recent={}), Path(sys.argv[1]), Path("unused")).load()
print("held", flush=True)
sys.stdin.read()
"""
"""A program that holds the lock of a file until its input ends."""


def lines(numbers: Iterable[int], account: str = "") -> bytes:
    return b"".join(event_line(event, account, NONE) for event in events(numbers))


class FileTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        folder = Path(self.mktemp())
        folder.mkdir()
        self.path = folder / "events.jsonl"
        self.cursor = folder / "cursor"
        self.file = LinesFile(NOTHING, self.path, self.cursor)
        self.addCleanup(self.file.close)

    def append(self, text: bytes) -> None:
        self.file.write(text, NOTHING)


class AppendTests(FileTestCase):
    def test_append(self) -> None:
        """Lines are appended, or written to a new file if it was moved."""
        self.path.write_bytes(lines([1]))
        self.append(lines([2]))
        self.append(lines([3, 4]))
        self.assertEqual(lines([1, 2, 3, 4]), self.path.read_bytes())
        moved = self.path.rename(f"{self.path}.1")
        for change in (
            lambda: None,
            self.path.unlink,
            lambda: os.truncate(self.path, 0),
        ):
            change()
            self.append(lines([5]))
            self.assertEqual(lines([5]), self.path.read_bytes())
        self.assertEqual(lines([1, 2, 3, 4]), moved.read_bytes())

    def test_mode(self) -> None:
        """Other users read neither the lines nor their copy in the cursor."""
        self.addCleanup(os.umask, os.umask(0o022))
        self.append(lines([1]))
        modes = [path.stat().st_mode & 0o777 for path in (self.path, self.cursor)]
        self.assertEqual([0o640, 0o640], modes)

    def test_failure(self) -> None:
        """A failed write is removed; lines that another program appended stay."""
        self.append(lines([1]))
        for others in (b"", b"whole\n", b"half"):
            before = self.path.read_bytes()

            def fail(file: int, others: bytes = others) -> None:
                if os.path.samestat(os.fstat(file), self.path.stat()):
                    os.write(file, others)
                    raise OSError(errno.EIO, os.strerror(errno.EIO))

            with MonkeyPatcher((os, "fsync", fail)), self.assertRaises(OSError):
                self.append(lines([2, 3]))
            written = lines([2, 3]) + others if others else b""
            self.assertEqual(before + written, self.path.read_bytes())

    def test_no_file(self) -> None:
        """A path that is not a regular file is refused."""
        os.mkfifo(self.path)
        with self.assertRaisesRegex(ValueError, "not a regular file"):
            self.append(b"x\n")
        self.path.unlink()
        self.path.mkdir()
        self.assertRaises(OSError, self.append, b"x\n")

    def test_other_process(self) -> None:
        """The file is refused while another process writes it."""
        self.append(lines([1]))
        self.file.close()
        command = [sys.executable, "-c", HOLDING, str(self.path)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            self.assertEqual(b"held\n", other.stdout.readline())
            opened = len(os.listdir("/proc/self/fd"))
            refusal = "^another process writes to this file$"
            with self.assertRaisesRegex(ValueError, refusal):
                self.append(lines([2]))
            with self.assertRaisesRegex(ValueError, refusal):
                self.file.load()
            self.assertEqual(opened, len(os.listdir("/proc/self/fd")))
            other.stdin.close()
        self.append(lines([2]))
        self.assertEqual(lines([1, 2]), self.path.read_bytes())

    def test_no_locks(self) -> None:
        """A file system without locks is accepted."""

        def lockf(*_: int) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        self.patch(fcntl, "lockf", lockf)
        self.append(lines([1]))
        self.assertEqual(lines([1]), self.path.read_bytes())


class RecoveryTests(FileTestCase):
    """A process continues where another one was killed."""

    def next_file(self) -> LinesFile:
        self.file.close()
        self.file = LinesFile(NOTHING, self.path, self.cursor)
        self.addCleanup(self.file.close)
        return self.file

    def cut(self, size: int) -> AuditCursor:
        """Write three events of which the file gets some bytes, and two before them."""
        for path in self.path.parent.iterdir():
            path.unlink()
        self.next_file().write(lines([1, 2]), NOTHING.with_(keys([1, 2])))
        cursor = NOTHING.with_(keys(range(1, 6)))
        self.file.write(lines([3, 4, 5]), cursor)
        os.truncate(self.path, len(lines([1, 2])) + size)
        return cursor

    def test_cut(self) -> None:
        """The rest of the saved lines is written, wherever a kill has cut them."""
        last = len(lines([3, 4, 5]))
        for size in range(0, last + 1, 1 if THOROUGH else 7):
            cursor = self.cut(size)
            left = lines([3, 4, 5])[size:].count(b"\n")
            found, recovered = self.next_file().load()
            self.assertEqual(cursor, found)
            self.assertEqual(lines(range(6 - left, 6)).splitlines(), recovered, size)
            self.assertEqual(lines(range(1, 6)), self.path.read_bytes(), size)
            self.assertEqual((cursor, []), self.next_file().load())

    def test_moved(self) -> None:
        """Lines of which a moved file has a part are completed there."""
        for size in (0, 1, len(lines([3])), len(lines([3, 4, 5])) - 1):
            self.cut(size)
            moved = self.path.rename(f"{self.path}.1")
            os.mkfifo(f"{self.path}.pipe")
            Path(f"{self.path}.link").symlink_to("nowhere")
            self.next_file().load()
            whole = moved.read_bytes() + self.path.read_bytes()
            self.assertEqual(lines(range(1, 6)), whole)
            self.assertEqual(not size, self.path.read_bytes() != b"")

    def test_removed(self) -> None:
        """If the file is removed, too, the saved lines are written again."""
        for others in (b"", lines(range(50, 60)), b"others\n"):
            self.cut(len(lines([3])))
            self.path.unlink()
            self.path.write_bytes(others)
            self.next_file().load()
            self.assertEqual(others + lines([3, 4, 5]), self.path.read_bytes())

    def test_cursor_not_saved(self) -> None:
        """Lines are returned once, also if the cursor could not be saved after them."""
        self.cut(0)
        file, size, replace = self.next_file(), self.path.stat().st_size, Path.replace

        def save(path: Path, target: Path) -> Path:
            if self.path.stat().st_size > size:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return replace(path, target)

        with MonkeyPatcher((Path, "replace", save)), self.assertRaises(OSError):
            file.load()
        self.assertEqual(lines(range(1, 6)), self.path.read_bytes())
        for expected in ([3, 4, 5], []):
            _, recovered = file.load()
            self.assertEqual(lines(expected).splitlines(), recovered)

    def test_other_program(self) -> None:
        """Saved lines are whole after lines that another program has appended."""
        self.cut(0)
        with self.path.open("ab") as file:
            file.write(b"others\n")
        self.next_file().load()
        expected = lines([1, 2]) + b"others\n" + lines([3, 4, 5])
        self.assertEqual(expected, self.path.read_bytes())

    def test_failure(self) -> None:
        """After a failed write, the lines are written with the next ones."""
        for move in (False, True):
            for path in self.path.parent.iterdir():
                path.unlink()
            self.append(lines([1]))
            write = os.write

            def fail(file: int, data: bytes, write: Any = write) -> int:
                if write(file, data[:5]):
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                return 0

            with MonkeyPatcher((os, "write", fail)), self.assertRaises(OSError):
                self.file.write(lines([2]), NOTHING.with_(keys([2])))
            self.assertEqual(lines([1]), self.path.read_bytes())
            if move:
                self.path.rename(f"{self.path}.1")
            cursor, recovered = self.file.load()
            self.assertEqual((NOTHING.with_(keys([2])), 1), (cursor, len(recovered)))
            self.assertEqual(lines([2] if move else [1, 2]), self.path.read_bytes())

    def test_former_version(self) -> None:
        """The cursor file of an earlier version is read."""
        cursor = NOTHING.with_(keys(range(1, 151)))
        text = msgspec.json.encode(cursor)
        self.cursor.write_bytes(b'{"last":[150,"x"],' + text[1:] + b"\n")
        self.path.write_bytes(lines(range(1, 151)))
        self.assertEqual((cursor, []), self.file.load())

    def test_not_ours(self) -> None:
        """A file with an incomplete line of another program is refused at any time."""
        self.append(lines([1]))
        with self.path.open("ab") as file:
            file.write(b"root:x:0:0")
        for use in (self.file.load, lambda: self.append(lines([2]))):
            with self.assertRaisesRegex(
                ValueError, "the last line is incomplete.*end it .*or remove it"
            ):
                use()
            self.assertEqual(lines([1]) + b"root:x:0:0", self.path.read_bytes())

    def test_lost_cursor_of_a_cut_line(self) -> None:
        """Without a cursor, an incomplete line is removed, even if it is long."""
        for whole in ([], [1]):
            self.path.write_bytes(lines(whole) + lines([2])[:-1] + b"x" * 200_000)
            expected = NOTHING.after_loss(keys(whole))
            self.assertEqual(expected, self.next_file().load()[0])
            self.assertEqual(lines(whole), self.path.read_bytes())

    def test_lost_cursor_of_a_busy_log(self) -> None:
        """Without a cursor, all rows of the last half minute are known by their ids."""
        table = Table()
        for number in range(400):
            table.add(number, START + number * NANOSECONDS_PER_SECOND // 20)
        pages = (f"sort_order=asc&page_size=100&page={n}" for n in range(1, 5))
        rows = [row for page in pages for row in table.page(page).rows]
        self.path.write_bytes(b"".join(row_line(row, "", NONE) for row in rows))
        file = LinesFile(Position(start=0), self.path, self.cursor)
        self.addCleanup(file.close)
        position, _ = file.load()
        assert isinstance(position, Position)
        self.assertEqual({row.id for row in rows}, position.known.keys())


class CursorFileTests(FileTestCase):
    saved = Saved(NOTHING.with_(keys(range(1, 151))), lines([9]), Place(3, 1 << 40))

    def test_saved(self) -> None:
        """A saved cursor is loaded, and no other file remains."""
        file = CursorFile(self.path, AuditCursor)
        self.assertIsNone(file.load())
        for last in (2, 3):
            for text in (b"", lines([1, 2])):
                saved = Saved(NOTHING.with_(keys(range(1, last))), text)
                file.save(saved)
                self.assertEqual(saved, file.load())
        self.assertEqual([self.path], list(self.path.parent.iterdir()))

    def test_full(self) -> None:
        """A full disk keeps the old cursor."""
        file = CursorFile(self.path, AuditCursor)
        file.save(Saved(NOTHING))
        with limited(200), self.assertRaises(OSError):
            file.save(self.saved)
        self.assertEqual(Saved(NOTHING), file.load())

    def test_damaged(self) -> None:
        """A damaged cursor is an error."""
        texts = (
            "x",
            "",
            "[]",
            "{}",
            '{"recent": 3}',
            '{"recent": {}}\n3\nx',
            "x" * 9_000_000,
        )
        for text in texts:
            for log in (AuditCursor, Position):
                self.assert_damaged(text, log)

    def test_other_log(self) -> None:
        """The cursor of the other log is an error, not the beginning of this log."""
        for cursor, log in ((NOTHING, Position), (Position(start=0), AuditCursor)):
            self.assert_damaged(msgspec.json.encode(cursor).decode(), log)

    def assert_damaged(self, text: str, log: type[LogCursor]) -> None:
        self.path.write_text(text)
        with self.assertRaisesRegex(
            ValueError, "events.jsonl does not contain a cursor: remove it"
        ):
            CursorFile(self.path, log).load()

    def test_no_file(self) -> None:
        """A pipe or a device is refused without blocking."""
        os.mkfifo(self.path)
        endless = self.path.with_name("endless")
        endless.symlink_to("/dev/zero")
        for path in (self.path, endless):
            with self.assertRaisesRegex(ValueError, "the file is not a regular file"):
                CursorFile(path, AuditCursor).load()

    def test_in_the_way(self) -> None:
        """A file with the temporary name is removed, and a link is not followed."""
        new = Path(f"{self.path}.new")
        other = self.path.with_name("other")
        other.write_text("precious")
        for make in (lambda: os.mkfifo(new), lambda: new.symlink_to("other")):
            make()
            CursorFile(self.path, AuditCursor).save(self.saved)
            self.assertEqual(self.saved, CursorFile(self.path, AuditCursor).load())
        self.assertEqual("precious", other.read_text())

    def test_largest(self) -> None:
        """The longest possible cursor is loaded."""
        stamp = "\0" * 64
        numbers = [*map(str, range(10**19, 10**19 + 2 * MAX_IDS))]
        former, recent = (
            dict.fromkeys(numbers[number : number + MAX_IDS], stamp)
            for number in (0, MAX_IDS)
        )
        cursor = replace(NOTHING, former=former, recent=recent)
        saved = Saved(cursor, lines([1]) * 100_000)
        CursorFile(self.path, AuditCursor).save(saved)
        self.assertEqual(saved, CursorFile(self.path, AuditCursor).load())

"""Files of lines after a crash, a full disk and a move."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace
from twisted.python.monkey import MonkeyPatcher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.events.audit_cursor import MAX_IDS, AuditCursor
from api_exporter.events.file import CursorFile, LinesFile
from api_exporter.events.kinds import ACCESS_LOG_KIND, AUDIT
from api_exporter.events.lines import event_line, row_line
from api_exporter.events.listing import NANOSECONDS_PER_SECOND, RowList
from api_exporter.events.log_cursor import MAX_BATCH_ROWS, batches
from api_exporter.events.position import Position
from tests import THOROUGH
from tests.events import body, events, finish, keys, limited
from tests.events.paging import START, Table

NONE = frozenset[str]()

HOLDING = """
import sys
from pathlib import Path
from api_exporter.events.file import LinesFile
from api_exporter.events.kinds import AUDIT
LinesFile(Path(sys.argv[1]), AUDIT, "").append(b"")
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
        self.file = LinesFile(self.path, AUDIT, "")
        self.addCleanup(self.file.close)


class AppendTests(FileTestCase):
    def test_append(self) -> None:
        """Lines are appended to existing lines. After the file was moved or removed, a
        new one is created; a truncated file is written from its beginning.
        """
        self.path.write_bytes(lines([1]))
        self.file.append(lines([2]))
        self.file.append(lines([3, 4]))
        self.assertEqual(lines([1, 2, 3, 4]), self.path.read_bytes())
        moved = self.path.rename(f"{self.path}.1")
        for change in (
            lambda: None,
            self.path.unlink,
            lambda: os.truncate(self.path, 0),
        ):
            change()
            self.file.append(lines([5]))
            self.assertEqual(lines([5]), self.path.read_bytes())
        self.assertEqual(lines([1, 2, 3, 4]), moved.read_bytes())

    def test_failure(self) -> None:
        """A failed write is removed; lines that another program appended stay."""
        self.file.append(lines([1]))
        for others in (b"", b"half", b"whole\n"):
            before = self.path.read_bytes()

            def fail(file: int, others: bytes = others) -> None:
                os.write(file, others)
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            with MonkeyPatcher((os, "fsync", fail)), self.assertRaises(OSError):
                self.file.append(lines([2, 3]))
            written = lines([2, 3]) + others if others else b""
            self.assertEqual(before + written, self.path.read_bytes())

    def test_lost_cursor_after_rotation(self) -> None:
        """Late events among the last lines of the moved file are found."""
        Path(f"{self.path}.1").write_bytes(lines([1, 2, 3, 5, 7]))
        self.path.write_bytes(lines([4, 6, 8]))
        self.assertEqual({*range(1, 9)}, {*self.file.recover(None).recent})
        self.path.write_bytes(b"")
        self.assertEqual(AuditCursor(), self.file.recover(None))

    def test_no_file(self) -> None:
        """A path that is not a regular file is refused."""
        os.mkfifo(self.path)
        with self.assertRaisesRegex(ValueError, "not a regular file"):
            self.file.append(b"x\n")
        self.path.unlink()
        self.path.mkdir()
        with self.assertRaises(OSError):
            self.file.append(b"x\n")

    def test_other_process(self) -> None:
        """The file is refused while another process writes it."""
        self.file.append(lines([1]))
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
                self.file.append(lines([2]))
            with self.assertRaisesRegex(ValueError, refusal):
                self.file.recover(None)
            self.assertEqual(opened, len(os.listdir("/proc/self/fd")))
            other.stdin.close()
        self.file.append(lines([2]))
        self.assertEqual(lines([1, 2]), self.path.read_bytes())

    def test_no_locks(self) -> None:
        """A file system without locks is accepted."""

        def lockf(*_: int) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        self.patch(fcntl, "lockf", lockf)
        self.file.append(lines([1]))
        self.assertEqual(lines([1]), self.path.read_bytes())


class RecoveryTests(FileTestCase):
    cursor = AuditCursor().with_(keys(range(1, 151)))

    def recover(self) -> AuditCursor:
        return self.file.recover(self.cursor)

    def test_written(self) -> None:
        """Lines beyond the cursor count as written: a batch in the file, and all in
        files that were moved away later.
        """
        moved = {".c": range(1, 101), ".a": range(101, 151), ".b": range(151, 161)}
        for files, newest in (
            ({}, 150),
            ({"": range(1, 151)}, 150),
            ({"": range(1, 152)}, 151),
            ({"": range(1, 151 + MAX_BATCH_ROWS // 2)}, 150 + MAX_BATCH_ROWS // 2),
            ({"": range(1, 151 + MAX_BATCH_ROWS)}, 150 + MAX_BATCH_ROWS),
            ({".1": range(1, 161)}, 160),
            ({".1": range(1, 161), "": range(161, 170)}, 169),
            (
                {".1": range(1, 161), "": range(161, 161 + MAX_BATCH_ROWS)},
                160 + MAX_BATCH_ROWS,
            ),
            (moved, 160),
            ({**moved, "": range(161, 170)}, 169),
            ({".7": range(999, 1000)}, 150),
        ):
            self.setUp()
            for time, (suffix, numbers) in enumerate(files.items()):
                path = Path(f"{self.path}{suffix}")
                path.write_bytes(lines(numbers))
                os.utime(path, (time, time))
            Path(f"{self.path}.gz").write_bytes(b"\x1f\x8b\n\n")
            expected = self.cursor.with_(keys(range(151, newest + 1)))
            self.assertEqual(expected, self.recover(), files)

    def test_cut(self) -> None:
        """An incomplete last line is removed."""
        whole = lines(range(1, 160))
        for cut in range(1, len(lines([159])), 1 if THOROUGH else 10):
            self.path.write_bytes(whole[:-cut])
            expected = self.cursor.with_(keys(range(151, 159)))
            self.assertEqual(expected, self.recover(), cut)
            self.assertEqual(lines(range(1, 159)), self.path.read_bytes())

    def test_cut_first(self) -> None:
        """An incomplete only line is removed, even if it is longer than a block."""
        self.assertEqual(AuditCursor(), self.file.recover(None))
        self.path.write_bytes(lines([1])[:-1] + b"x" * 200_000)
        self.assertEqual(AuditCursor(), self.file.recover(None))
        self.assertEqual(b"", self.path.read_bytes())

    def test_not_ours(self) -> None:
        """A file with an incomplete line of another program is refused."""
        self.path.write_bytes(lines([1]) + b"root:x:0:0")
        with self.assertRaisesRegex(
            ValueError, "the last line is incomplete.*end it .*or remove it"
        ):
            self.recover()
        self.assertEqual(lines([1]) + b"root:x:0:0", self.path.read_bytes())

    def test_lost_cursor(self) -> None:
        """Without a cursor, the last lines are the written events."""
        self.path.write_bytes(lines(range(1, 500)))
        recover = self.file.recover(None)
        self.assertEqual(
            (499, 2 * MAX_BATCH_ROWS), (max(recover.recent), len(recover.recent))
        )

    def test_lost_cursor_and_file(self) -> None:
        """Without a cursor, events before few lines count as written, even if the
        first of these lines were late.
        """
        self.path.write_bytes(lines([3, 6, 11, 12]))
        self.assertEqual([13], self.new_ids(None, range(1, 14)))

    def test_lost_cursor_of_many_files(self) -> None:
        """Without a cursor, all events in moved files count as written."""
        for number in range(1, 9):
            moved = Path(f"{self.path}.{number}")
            moved.write_bytes(lines(range(300 * number, 300 * (number + 1))))
            os.utime(moved, (number, number))
        self.path.write_bytes(lines(range(2700, 2710)))
        self.assertEqual([2710], self.new_ids(None, range(1, 2711)))

    def test_first_batch(self) -> None:
        """After a crash in the first batch, a late event is still written."""
        self.path.write_bytes(lines([1, 3, 4, 5]))
        self.assertEqual([2, 6], self.new_ids(AuditCursor(), range(1, 7)))

    def new_ids(self, saved: AuditCursor | None, listed: range) -> list[int]:
        cursor = self.file.recover(saved)
        return [e.id for e in AUDIT.new_rows(cursor, RowList(events(listed)), 0).rows]

    def test_lost_cursor_of_a_busy_log(self) -> None:
        """All rows of the last half minute are found without a current cursor.

        They are more than a batch, and some are in the moved file.
        """
        table = Table()
        for number in range(400):
            table.add(number, START + number * NANOSECONDS_PER_SECOND // 20)
        pages = (f"sort_order=asc&page_size=100&page={n}" for n in range(1, 5))
        rows = [row for page in pages for row in table.page(page).rows]
        text = [row_line(row, "", NONE) for row in rows]
        file = LinesFile(self.path, ACCESS_LOG_KIND, "")
        self.addCleanup(file.close)
        old = Position(last=("gone", "2026-11-20T19:00:00Z"))
        for moved, cursor in ((350, None), (250, None), (0, old)):
            Path(f"{self.path}.1").write_bytes(b"".join(text[:moved]))
            self.path.write_bytes(b"".join(text[moved:]))
            known = file.recover(cursor).known
            self.assertEqual({row.id for row in rows}, known.keys())

    def test_other_account(self) -> None:
        """A file of another account with the same beginning of its name is ignored."""
        self.path.write_bytes(lines(range(1, 151)))
        moved = self.path.rename(f"{self.path}.1")
        os.utime(moved, (1, 1))
        Path(f"{self.path}.b").write_bytes(lines(range(900, 950), "b"))
        self.assertEqual(self.cursor, self.recover())

    def test_not_moved(self) -> None:
        """Pipes, folders and links with such a name are ignored without blocking."""
        os.mkfifo(f"{self.path}.pipe")
        Path(f"{self.path}.d").mkdir()
        Path(f"{self.path}.link").symlink_to("nowhere")
        Path(f"{self.path}.socket").symlink_to("/dev/zero")
        self.assertEqual(self.cursor, self.recover())

    def test_heavy(self) -> None:
        """A batch of very long lines is found."""
        sent = json.loads(body(range(1, 120)))
        for one in sent:
            one["activity"] = "x" * 300_000
        batch = next(batches(finish(json.dumps(sent).encode())))
        self.path.write_bytes(b"".join(event_line(event, "", NONE) for event in batch))
        expected = keys(range(1, 1 + len(batch)))
        self.assertEqual(dict(expected), self.file.recover(None).recent)


class CursorFileTests(FileTestCase):
    cursor = AuditCursor().with_(keys(range(1, 151)))

    def test_saved(self) -> None:
        """A saved cursor is loaded, and no other file remains."""
        file = CursorFile(self.path, AuditCursor)
        self.assertIsNone(file.load())
        for last in (2, 3):
            cursor = AuditCursor().with_(keys(range(1, last)))
            file.save(cursor)
            self.assertEqual(cursor, file.load())
        self.assertEqual([self.path], list(self.path.parent.iterdir()))

    def test_full(self) -> None:
        """A full disk keeps the old cursor."""
        file = CursorFile(self.path, AuditCursor)
        file.save(AuditCursor())
        with limited(200), self.assertRaises(OSError):
            file.save(AuditCursor().with_(keys(range(1, 100))))
        self.assertEqual(AuditCursor(), file.load())

    def test_damaged(self) -> None:
        """A damaged cursor is an error."""
        for text in ("x", "", "[]", '{"recent": 3}', '{"last": [1]}', "x" * 9_000_000):
            self.path.write_text(text)
            with self.assertRaisesRegex(
                ValueError, "events.jsonl does not contain a cursor: "
            ):
                CursorFile(self.path, AuditCursor).load()

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
            CursorFile(self.path, AuditCursor).save(self.cursor)
            self.assertEqual(self.cursor, CursorFile(self.path, AuditCursor).load())
        self.assertEqual("precious", other.read_text())

    def test_largest(self) -> None:
        """The longest possible cursor is loaded."""
        stamp = "\0" * 64
        numbers = range(10**19, 10**19 + 2 * MAX_IDS)
        for number in (0, MAX_IDS):
            recent = dict.fromkeys(numbers[number : number + MAX_IDS], stamp)
            self.cursor = replace(self.cursor, former=self.cursor.recent, recent=recent)
        CursorFile(self.path, AuditCursor).save(self.cursor)
        self.assertEqual(self.cursor, CursorFile(self.path, AuditCursor).load())

"""The files of a log: its lines and its cursor. All functions may block.

A killed process leaves whole lines, at most one incomplete line, and a cursor that is
at most one batch behind. The last lines show which batch.
"""

import fcntl
import glob
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Generic

from api_exporter.events.kinds import Kind
from api_exporter.events.lines import LINE_START, line_start
from api_exporter.events.listing import Id, RowKey
from api_exporter.events.log_cursor import MAX_BATCH_ROWS, C
from api_exporter.settings.regular_file import read_regular_file

_BLOCK_BYTES = 64 * 1024
_MAX_TAIL_BYTES = 64 * 1024 * 1024
"""Maximum bytes read to find the last lines of a file."""

_MAX_CURSOR_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a cursor: 100,000 ids with their timestamps."""


class CursorFile(Generic[C]):
    """The file of a cursor. Methods raise OSError, or ValueError for other content."""

    def __init__(self, path: Path, cursor: type[C]) -> None:
        self.path = path
        self._cursor = cursor
        self._new = path.with_name(f"{path.name}.new")

    def load(self) -> C | None:
        try:
            return self._cursor.decode(read_regular_file(self.path, _MAX_CURSOR_BYTES))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(
                f"{self.path} does not contain a cursor: {error}"
            ) from None

    def save(self, cursor: C) -> None:
        """Replace the file atomically: a crash leaves the old or the new cursor."""
        self._new.unlink(missing_ok=True)
        with self._new.open("xb") as file:
            file.write(cursor.encode())
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class LinesFile(Generic[C, Id]):
    """A file of lines that other programs may move away.

    Its methods raise OSError, and ValueError if it is not a file of lines.
    """

    def __init__(self, path: Path, kind: Kind[C, Id], account: str) -> None:
        self.path = path
        self._kind = kind
        self._line_start = line_start(account)
        self._file: int | None = None

    def append(self, lines: bytes) -> None:
        """Append all lines, or none if an error is raised."""
        file = self._open()
        size = os.fstat(file).st_size
        try:
            remaining = memoryview(lines)
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
            os.fsync(file)
        except OSError:
            # Another program may have appended lines.
            if lines.startswith(os.pread(file, len(lines) + 1, size)):
                os.ftruncate(file, size)
            raise

    def recover(self, cursor: C | None) -> C:
        """Remove an incomplete last line; return the cursor after the last lines."""
        file, kind = self._open(), self._kind
        _remove_incomplete_line(file)
        if cursor is None:
            keys = self._last_keys(file, kind.tail)
            if 0 < len(keys) < kind.tail:
                keys = [*self._moved_keys(None), *keys][-kind.tail :]
            return kind.first.after_loss(keys)
        keys = self._last_keys(file, MAX_BATCH_ROWS + 1)
        if cursor.last not in keys:
            if len(keys) > MAX_BATCH_ROWS:
                keys = self._last_keys(file, kind.tail)
            elif cursor.last is not None:
                keys = [*self._moved_keys(cursor.last), *keys]
        return cursor.after_crash(keys)

    def _moved_keys(self, last: RowKey[Id] | None) -> list[RowKey[Id]]:
        """Return the keys of lines in moved files that the cursor may not contain.

        A file may be moved several times while a full disk keeps the cursor behind.

        Args:
            last: the last key of the cursor; None if the cursor is lost.
        """
        paths = self.path.parent.glob(f"{glob.escape(self.path.name)}?*")
        count = self._kind.tail if last is None else MAX_BATCH_ROWS + 1
        found: list[RowKey[Id]] = []
        for _, keys in sorted(self._keys_of(path, count) for path in paths):
            if found or last is None or last in keys:
                found += keys
        return found

    def _keys_of(self, path: Path, count: int) -> tuple[int, list[RowKey[Id]]]:
        """Return a file's time and last keys; none if it is not of this log."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0, []
        try:
            status = os.fstat(file)
            if not S_ISREG(status.st_mode):
                return 0, []
            if os.pread(file, len(self._line_start), 0) != self._line_start:
                return 0, []
            return status.st_mtime_ns, self._last_keys(file, count)
        finally:
            os.close(file)

    def _last_keys(self, file: int, count: int) -> list[RowKey[Id]]:
        blocks: list[bytes] = []
        ends = 0
        for _, block in _blocks_backwards(file):
            blocks.append(block)
            ends += block.count(b"\n")
            if ends > count:
                break
        lines = b"".join(reversed(blocks)).split(b"\n")
        found = map(self._kind.key, lines[-count - 1 :])
        return [one for one in found if one is not None]

    def close(self) -> None:
        """Close the file; the next write opens the path again."""
        if self._file is not None:
            file, self._file = self._file, None  # closed even if that fails
            os.close(file)

    def _open(self) -> int:
        if self._file is not None and self._is_moved(self._file):
            self.close()
        if self._file is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
            file = os.open(self.path, flags, 0o640)
            if why := _lock(file):
                os.close(file)
                raise ValueError(why)
            self._file = file
        return self._file

    def _is_moved(self, file: int) -> bool:
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(file))
        except OSError:  # removed, or a stale handle of a network file system
            return True


def _lock(file: int) -> str:
    """Lock a file, or return why not: two processes would write each line twice."""
    if not S_ISREG(os.fstat(file).st_mode):
        return "the file is not a regular file"
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return "another process writes to this file"
    except OSError:
        pass  # there are file systems without locks
    return ""


def _remove_incomplete_line(file: int) -> None:
    size = os.fstat(file).st_size
    last_line = size
    for start, block in _blocks_backwards(file):
        last_line = start + block.rfind(b"\n") + 1
        if last_line > start:
            break
    if last_line < size:
        torn = os.pread(file, min(size - last_line, len(LINE_START)), last_line)
        if not LINE_START.startswith(torn):
            raise ValueError(
                "the last line is incomplete, and the exporter did not write it: end it"
                " with a line feed, or remove it"
            )
        os.ftruncate(file, last_line)


def _blocks_backwards(file: int) -> Iterator[tuple[int, bytes]]:
    end = os.fstat(file).st_size
    last = max(0, end - _MAX_TAIL_BYTES)
    while end > last:
        start = max(last, end - _BLOCK_BYTES)
        yield start, os.pread(file, end - start, start)
        end = start

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

from api_exporter.events.choice import BATCH, C
from api_exporter.events.kinds import Kind
from api_exporter.events.listing import Id, Key
from api_exporter.events.telling import BEGIN, begin
from api_exporter.settings.token import regular

_BLOCK = 64 * 1024
_LONGEST_TAIL = 64 * 1024 * 1024
"""Maximum bytes read to find the last lines of a file."""

_LONGEST_CURSOR = 8 * 1024 * 1024
"""Maximum bytes of a cursor: 100,000 ids with their timestamps."""


class CursorFile(Generic[C]):
    """The file of a cursor; methods raise OSError, or ValueError if it has none."""

    def __init__(self, path: Path, cursor: type[C]) -> None:
        self.path = path
        self._cursor = cursor
        self._new = path.with_name(f"{path.name}.new")

    def load(self) -> C | None:
        try:
            return self._cursor.loaded(regular(self.path, _LONGEST_CURSOR))
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
            file.write(cursor.dumped())
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

    Args:
        account: the account's name, empty if it is the only one.
    """

    def __init__(self, path: Path, kind: Kind[C, Id], account: str) -> None:
        self.path = path
        self._kind = kind
        self._begin = begin(account)
        self._file: int | None = None

    def append(self, lines: bytes) -> None:
        """Append all lines, or none if an error is raised."""
        file = self._opened()
        size = os.fstat(file).st_size
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise

    def recovered(self, cursor: C | None) -> C:
        """Remove an incomplete last line; return the cursor after the last lines."""
        file, kind = self._opened(), self._kind
        _mend(file)
        cursor = kind.first if cursor is None else cursor
        last = cursor.last
        told = self._keys(file, BATCH + 1)
        if last is None and told:  # without lines and cursor, all rows are new
            told = self._keys(file, kind.tail)
            if len(told) < kind.tail:
                told = [*self._moved(last), *told]
        elif last is not None and last not in told:
            if len(told) <= BATCH:
                told = [*self._moved(last), *told]
            else:
                told = self._keys(file, kind.tail)
        return cursor.after_crash(told)

    def _moved(self, last: Key[Id] | None) -> list[Key[Id]]:
        """Return the keys of lines in moved files that the cursor may not contain.

        A file may be moved several times while a full disk keeps the cursor behind.

        Args:
            last: the last key of the cursor; None if the cursor is lost.
        """
        paths = self.path.parent.glob(f"{glob.escape(self.path.name)}?*")
        count = self._kind.tail if last is None else BATCH + 1
        told: list[Key[Id]] = []
        for _, keys in sorted(self._keys_of(path, count) for path in paths):
            if told or last is None or last in keys:
                told += keys
        return told

    def _keys_of(self, path: Path, count: int) -> tuple[int, list[Key[Id]]]:
        """Return a file's time and last keys; none if it is not of this log."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0, []
        try:
            status = os.fstat(file)
            if not S_ISREG(status.st_mode):
                return 0, []
            if os.pread(file, len(self._begin), 0) != self._begin:
                return 0, []
            return status.st_mtime_ns, self._keys(file, count)
        finally:
            os.close(file)

    def _keys(self, file: int, count: int) -> list[Key[Id]]:
        blocks: list[bytes] = []
        ends = 0
        for _, block in _backwards(file):
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
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is not None and self._is_moved(self._file):
            self.close()
        if self._file is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
            file = os.open(self.path, flags, 0o640)
            if why := _refused(file):
                os.close(file)
                raise ValueError(why)
            self._file = file
        return self._file

    def _is_moved(self, file: int) -> bool:
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(file))
        except FileNotFoundError:
            return True


def _refused(file: int) -> str:
    """Return why a file cannot be written, or "". Lock it: two processes would write
    each line twice.
    """
    if not S_ISREG(os.fstat(file).st_mode):
        return "the file is not a regular file"
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return "another process writes to this file"
    except OSError:
        pass  # there are file systems without locks
    return ""


def _mend(file: int) -> None:
    size = os.fstat(file).st_size
    begin = size
    for start, block in _backwards(file):
        begin = start + block.rfind(b"\n") + 1
        if begin > start:
            break
    if begin < size:
        torn = os.pread(file, min(size - begin, len(BEGIN)), begin)
        if not BEGIN.startswith(torn):
            raise ValueError(
                "the last line is incomplete, and the exporter did not write this line"
            )
        os.ftruncate(file, begin)


def _backwards(file: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks from the end of a file, each with its offset."""
    end = os.fstat(file).st_size
    last = max(0, end - _LONGEST_TAIL)
    while end > last:
        start = max(last, end - _BLOCK)
        yield start, os.pread(file, end - start, start)
        end = start

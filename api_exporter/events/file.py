"""The files of a log: its lines, and the cursor. Whatever is here may block.

Whoever is killed leaves whole lines, perhaps one that is cut, and a cursor that is one
batch of lines behind at most: the last lines tell which.
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
"""Bytes in which the last lines of a file are looked for."""

_LONGEST_CURSOR = 8 * 1024 * 1024
"""Bytes: of a hundred thousand ids with their timestamps."""


class CursorFile(Generic[C]):
    """Holds a cursor; raises OSError, or ValueError where it holds none."""

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
        """In one step: there is the old one or the new one, whenever we are killed."""
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
    """A file that lines are added to, and that others may move away.

    Its methods raise OSError, and ValueError where it is no file of lines.

    Args:
        account: its name, empty where it is the only one.
    """

    def __init__(self, path: Path, kind: Kind[C, Id], account: str) -> None:
        self.path = path
        self._kind = kind
        self._begin = begin(account)
        self._file: int | None = None

    def append(self, lines: bytes) -> None:
        """All of them or, where that raises, none."""
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
        """The cursor with what the last lines tell; one that is cut is removed."""
        file, kind = self._opened(), self._kind
        _mend(file)
        cursor = kind.first if cursor is None else cursor
        last = cursor.last
        told = self._keys(file, BATCH + 1)
        if last is None and told:  # without a line, too, all of it is wanted again
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
        """What was written before the file was moved, if the cursor is behind that.

        While a full disk keeps the cursor behind, it may be moved again.

        Args:
            last: of the cursor; None where it is lost, so that all of it is beyond.
        """
        paths = self.path.parent.glob(f"{glob.escape(self.path.name)}?*")
        count = self._kind.tail if last is None else BATCH + 1
        told: list[Key[Id]] = []
        for _, keys in sorted(self._keys_of(path, count) for path in paths):
            if told or last is None or last in keys:
                told += keys
        return told

    def _keys_of(self, path: Path, count: int) -> tuple[int, list[Key[Id]]]:
        """Of any file, after its time; none where it cannot be read, or is not ours."""
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
        """Of so many last lines."""
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
        """What is written next goes to what has its name then."""
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
    """Why it cannot be written; "" where it can. Then it is ours alone: two processes
    would write everything twice.
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
    """Remove a last line that has no end, if it is one of ours."""
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
    """Blocks from the end on, each with its place."""
    end = os.fstat(file).st_size
    last = max(0, end - _LONGEST_TAIL)
    while end > last:
        start = max(last, end - _BLOCK)
        yield start, os.pread(file, end - start, start)
        end = start

"""The files of an account: its events, and the cursor. Whatever is here may block.

Whoever is killed leaves whole lines, perhaps one that is cut, and a cursor that is one
batch of lines behind at most: the last lines tell which.
"""

import fcntl
import glob
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from api_exporter.events.cursor import BATCH, Cursor, dumped, loaded
from api_exporter.events.listing import Key, key
from api_exporter.events.telling import BEGIN
from api_exporter.settings.token import regular

_BLOCK = 64 * 1024
_LONGEST_TAIL = 64 * 1024 * 1024
"""Bytes in which the last lines of a file are looked for."""

_LONGEST_CURSOR = 1024 * 1024
"""Bytes: of two thousand ids with their timestamps."""


class CursorFile:
    """Holds a cursor; raises OSError, or ValueError where it holds none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new = path.with_name(f"{path.name}.new")

    def load(self) -> Cursor | None:
        try:
            return loaded(regular(self.path, _LONGEST_CURSOR))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{self.path} holds no cursor: {error}") from None

    def save(self, cursor: Cursor) -> None:
        """In one step: there is the old one or the new one, whenever we are killed."""
        self._new.unlink(missing_ok=True)
        with self._new.open("xb") as file:
            file.write(dumped(cursor))
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class EventsFile:
    """A file that lines are added to, and that others may move away.

    Its methods raise OSError, and ValueError where it is no file of lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
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

    def recovered(self, cursor: Cursor | None) -> Cursor:
        """The cursor with what the last lines tell; one that is cut is removed."""
        file = self._opened()
        _mend(file)
        told = _keys(file)
        cursor = Cursor() if cursor is None else cursor
        if len(told) <= BATCH and cursor.last not in told:
            told = [*self._moved(cursor), *told]
        return cursor.after_crash(told)

    def _moved(self, cursor: Cursor) -> list[Key]:
        """What was written before the file was moved, if the cursor is behind that."""
        if cursor.last is None:
            return []
        for path in self.path.parent.glob(f"{glob.escape(self.path.name)}?*"):
            told = _keys_of(path)
            if cursor.last in told:
                return told
        return []

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
        return "it is no regular file"
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return "another process writes it"
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
            raise ValueError("its last line is no audit event, and has no end")
        os.ftruncate(file, begin)


def _keys_of(path: Path) -> list[Key]:
    """Of any file; none where it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return _keys(file) if S_ISREG(os.fstat(file).st_mode) else []
    finally:
        os.close(file)


def _keys(file: int) -> list[Key]:
    """Of the last lines, one more than a batch."""
    blocks: list[bytes] = []
    ends = 0
    for _, block in _backwards(file):
        blocks.append(block)
        ends += block.count(b"\n")
        if ends > BATCH + 1:
            break
    lines = b"".join(reversed(blocks)).split(b"\n")
    found = map(key, lines[-BATCH - 2 :])
    return [one for one in found if one is not None]


def _backwards(file: int) -> Iterator[tuple[int, bytes]]:
    """Blocks from the end on, each with its place."""
    end = os.fstat(file).st_size
    last = max(0, end - _LONGEST_TAIL)
    while end > last:
        start = max(last, end - _BLOCK)
        yield start, os.pread(file, end - start, start)
        end = start

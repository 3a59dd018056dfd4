"""The files of a log: its lines and its cursor. All functions may block.

Note [Written once]. New lines are first saved with their cursor and with the place in
the file where they begin. Then they are appended. After a crash or a failure, the file
shows how many of their bytes it has, and the rest is appended.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec
from msgspec import Struct

from api_exporter.logs.lines import LINE_START
from api_exporter.logs.listing import LogCursor
from api_exporter.settings.regular_file import read_regular_file

_MODE = 0o640
"""The mode of new files: their lines may contain personal data."""

_TAIL_BYTES = 1024 * 1024
"""Bytes at the end of a file that are read if there is no cursor."""

_MAX_CURSOR_BYTES = 512 * 1024 * 1024
"""Maximum bytes of a cursor with its lines: a body may be one event of 256 MiB."""


class Place(Struct, frozen=True):
    """A place in a file, which may be moved."""

    inode: int
    offset: int


class Saved(Struct, frozen=True):
    """A cursor and the lines before it.

    Attributes:
        lines: the newest lines; empty if all lines are in the file.
        place: where they begin.
    """

    cursor: LogCursor
    lines: bytes = b""
    place: Place = Place(0, 0)


class CursorFile:
    """The file of a cursor. Methods raise OSError, or ValueError for other content.

    Its first line is the cursor. The place and the newest lines may follow.
    """

    def __init__(self, path: Path, cursor: type[LogCursor]) -> None:
        self.path = path
        self._cursor = cursor
        self._new = path.with_name(f"{path.name}.new")

    def load(self) -> Saved | None:
        try:
            size = min(self.path.stat().st_size, _MAX_CURSOR_BYTES)
            cursor, _, rest = read_regular_file(self.path, size).partition(b"\n")
            saved = Saved(msgspec.json.decode(cursor, type=self._cursor))
            if not rest:
                return saved
            place, _, lines = rest.partition(b"\n")
            return Saved(saved.cursor, lines, msgspec.json.decode(place, type=Place))
        except FileNotFoundError:
            return None
        except (ValueError, msgspec.MsgspecError) as error:
            why = "remove it" if isinstance(error, msgspec.MsgspecError) else error
            raise ValueError(f"{self.path} does not contain a cursor: {why}") from None

    def save(self, saved: Saved) -> None:
        """Replace the file atomically: a crash leaves the old or the new cursor."""
        self._new.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(self._new, flags, _MODE), "wb") as file:
            file.write(msgspec.json.encode(saved.cursor) + b"\n")
            if saved.lines:
                file.write(msgspec.json.encode(saved.place) + b"\n" + saved.lines)
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class LinesFile:
    """A file of lines that other programs may move away, and its cursor.

    Its methods raise OSError, and ValueError if a file has other content.
    """

    def __init__(self, first: LogCursor, path: Path, cursor: Path) -> None:
        self.path = path
        self._first = first
        self._cursor = CursorFile(cursor, type(first))
        self._file: int | None = None
        self._recovered: list[bytes] = []
        """Lines that were written late, until `load` has returned them."""

    def load(self) -> tuple[LogCursor, list[bytes]]:
        """Return the cursor, and the lines before it that were not written until now.

        Without a cursor, the last lines have the position.
        """
        saved = self._cursor.load()
        file = self._open()
        if saved is not None:
            self._append_rest(saved, file)
        last_lines = _last_lines(file)
        recovered, self._recovered = self._recovered, []
        if saved is None:
            keys = filter(None, map(self._first.key, last_lines))
            return self._first.after_loss([*keys]), recovered
        return saved.cursor, recovered

    def write(self, lines: bytes, cursor: LogCursor) -> None:
        """Save the cursor, then append. If that fails, only `load` may follow."""
        if not lines:
            self._cursor.save(Saved(cursor))
            return
        file = self._open()
        _last_lines(file)  # removes an incomplete one
        status = os.fstat(file)
        self._cursor.save(Saved(cursor, lines, Place(status.st_ino, status.st_size)))
        _append(file, lines)

    def _append_rest(self, saved: Saved, file: int) -> None:
        """Write the lines that are not in the file; see Note [Written once]."""
        if not saved.lines:
            return
        moved = self._moved_file(saved.place, file)
        target = file if moved is None else moved
        try:
            present = os.pread(target, len(saved.lines), saved.place.offset)
            if not saved.lines.startswith(present):
                present = b""  # another file, or lines of another program
            if present:
                _append(target, saved.lines[len(present) :])
            else:
                self.write(saved.lines, saved.cursor)
        finally:
            if moved is not None:
                os.close(moved)
        self._recovered += saved.lines.split(b"\n")[present.count(b"\n") : -1]
        self._cursor.save(Saved(saved.cursor))

    def _moved_file(self, place: Place, file: int) -> int | None:
        """Open the file of a place if it was moved in its folder."""
        opened = os.fstat(file)
        for path in self.path.parent.iterdir() if opened.st_ino != place.inode else ():
            with suppress(OSError):
                status = path.stat()
                if (status.st_ino, status.st_dev) == (place.inode, opened.st_dev):
                    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        return None

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
            file = os.open(self.path, flags, _MODE)
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


def _append(file: int, lines: bytes) -> None:
    """Append all lines, or none if an error is raised."""
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


def _last_lines(file: int) -> list[bytes]:
    """Remove an incomplete last line, and return the lines before it."""
    size = os.fstat(file).st_size
    tail = os.pread(file, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    *lines, torn = tail.split(b"\n")
    if torn:
        if not LINE_START.startswith(torn[: len(LINE_START)]):
            raise ValueError(
                "the last line is incomplete, and the exporter did not write it: end it"
                " with a line feed, or remove it"
            )
        os.ftruncate(file, size - len(torn))
    return lines

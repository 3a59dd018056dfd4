"""Destinations of lines and their cursors: a file, standard output, none."""

import os
import select
from collections.abc import Awaitable, Callable
from contextlib import suppress
from errno import EBUSY
from pathlib import Path
from typing import Protocol, TypeVar

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.logs.file import CursorFile, LinesFile, Saved
from api_exporter.logs.listing import LogCursor

PIPE_WRITE_BYTES = 4096
"""Bytes that a writable pipe accepts whole and without blocking (PIPE_BUF)."""


class Output:
    """A file descriptor, which may be in blocking mode.

    The rest of a line that was written in part is written before other lines.
    """

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._unfinished = b""

    @property
    def is_flushed(self) -> bool:
        """True if all accepted lines are written completely."""
        return not self._unfinished

    def write(self, lines: bytes) -> int:
        """Write without blocking; return the accepted bytes of whole lines."""
        self._unfinished = self._unfinished[self._send(self._unfinished) :]
        if self._unfinished:
            return 0
        sent = self._send(lines)
        end = sent if lines[:sent].endswith(b"\n") else lines.find(b"\n", sent) + 1
        self._unfinished = lines[sent:end] if sent else b""
        return end if sent else 0

    def _send(self, lines: bytes) -> int:
        sent = 0
        while sent < len(lines) and self._poll.poll(0):
            # Short lines are written whole, so a killed process leaves whole lines.
            limit = min(sent + PIPE_WRITE_BYTES, len(lines))
            end = lines.rfind(b"\n", sent, limit) + 1 or limit
            try:
                sent += os.write(self._descriptor, lines[sent:end])
            except OSError:
                if not sent:
                    raise
                break
        return sent


T = TypeVar("T")


class InThread(Protocol):
    """Runs blocking work in a thread."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Sink(Protocol):
    """A destination of lines. Methods raise OSError or ValueError.

    Attributes:
        first: the cursor of an empty log.
        where: its name in log lines.
    """

    first: LogCursor
    where: str

    async def load(self) -> tuple[LogCursor, list[bytes]]:
        """Finish the last write; return its cursor, and the lines that it had left.

        From here to `close`, no other log of the process uses the files.
        """

    async def write(self, lines: bytes, cursor: LogCursor) -> None:
        """Write lines and save their cursor. If that fails, only `load` may follow.

        An empty text must follow the last lines: their copy beside the cursor goes.
        """

    def close(self) -> None:
        """Close the file of lines; the next write opens it again."""


class OwnedPaths:
    """Paths that one log of the process uses at a time.

    The log of a replaced account keeps them until its last write has ended: locks do
    not exclude the own process.

    Args:
        in_use: paths of all logs of the process.
    """

    def __init__(self, in_use: set[Path], *paths: Path) -> None:
        self._in_use = in_use
        self._paths = {Path(os.path.realpath(path)) for path in paths}
        self._is_owner = False

    def acquire(self) -> None:
        """Raise OSError if another log uses one of the paths."""
        if not self._is_owner:
            if not self._in_use.isdisjoint(self._paths):
                raise OSError(EBUSY, "an earlier write has not ended")
            self._in_use |= self._paths
            self._is_owner = True

    def release(self) -> None:
        if self._is_owner:
            self._in_use -= self._paths
            self._is_owner = False


class FileSink:
    """Writes lines to a file, each once."""

    def __init__(
        self,
        first: LogCursor,
        path: Path,
        cursor: Path,
        *,
        in_thread: InThread,
        in_use: set[Path],
    ) -> None:
        self.first, self.where = first, str(path)
        self._file = LinesFile(first, path, cursor)
        self._paths = OwnedPaths(in_use, path, cursor)
        self._in_thread = in_thread

    async def load(self) -> tuple[LogCursor, list[bytes]]:
        self._paths.acquire()
        return await self._in_thread(self._file.load)

    async def write(self, lines: bytes, cursor: LogCursor) -> None:
        await self._in_thread(lambda: self._file.write(lines, cursor))

    def close(self) -> None:
        with suppress(OSError):  # accepted lines are on the disk already
            self._file.close()
        self._paths.release()


READER_TIMEOUT = 10.0
"""Seconds without a read from standard output before the write fails."""

_POLL_INTERVAL = 0.05


class OutputSink:
    """Writes lines to standard output, where written lines cannot be read back."""

    where = "standard output"

    def __init__(
        self,
        first: LogCursor,
        output: Output,
        cursor: Path,
        *,
        in_thread: InThread,
        in_use: set[Path],
        clock: IReactorTime,
    ) -> None:
        self._output = output
        self.first = first
        self._cursor = CursorFile(cursor, type(first))
        self._paths = OwnedPaths(in_use, cursor)
        self._in_thread = in_thread
        self._clock = clock
        self._lines = self._remaining = b""
        self._unsaved: LogCursor | None = None

    async def load(self) -> tuple[LogCursor, list[bytes]]:
        self._paths.acquire()
        if self._unsaved is not None:
            cursor, lines = self._unsaved, self._lines
            await self._finish(cursor)
            return cursor, lines.split(b"\n")[:-1]
        found = await self._in_thread(self._cursor.load)
        return (self.first if found is None else found.cursor), []

    async def write(self, lines: bytes, cursor: LogCursor) -> None:
        self._lines, self._remaining, self._unsaved = lines, lines, cursor
        await self._finish(cursor)

    async def _finish(self, cursor: LogCursor) -> None:
        deadline = self._clock.seconds() + READER_TIMEOUT
        while self._remaining or not self._output.is_flushed:
            written = self._output.write(self._remaining)
            self._remaining = self._remaining[written:]
            if written:
                deadline = self._clock.seconds() + READER_TIMEOUT
            elif self._clock.seconds() >= deadline:
                raise OSError(0, "no program reads standard output")
            else:
                await deferLater(self._clock, _POLL_INTERVAL)
        await self._in_thread(lambda: self._cursor.save(Saved(cursor)))
        self._lines, self._unsaved = b"", None

    def close(self) -> None:
        """Free the cursor; standard output stays open."""
        self._paths.release()


class NullSink:
    """Writes nothing; rows are only counted."""

    where = "metrics only, not to a file"

    def __init__(self, first: LogCursor) -> None:
        self.first = self._cursor = first

    async def load(self) -> tuple[LogCursor, list[bytes]]:
        return self._cursor, []

    async def write(self, _: bytes, cursor: LogCursor) -> None:
        self._cursor = cursor

    def close(self) -> None:
        """Do nothing."""

"""Outlets of log lines. An outlet accepts a line at once or rejects it: none blocks."""

import fcntl
import os
import select
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from twisted.logger import Logger
from twisted.python import logfile

MAX_WRITE_BYTES = 4096
"""The number of bytes that a pipe accepts without blocking, if it accepts any."""

ROTATED_AT = 10_000_000

ROTATED_FILES = 9

log = Logger()


class Outlet(Protocol):
    """A destination of log lines."""

    def write(self, line: str) -> bool:
        """Write a line; return whether all was accepted. Never block, never raise."""


class Stream:
    """An inherited file descriptor, which other programs may use as well.

    Its mode stays as it is, blocking or not: each write polls it first.
    """

    def __init__(self, number: int) -> None:
        self._descriptor = _nonblocking(number)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)
        self._torn = False

    def write(self, line: str) -> bool:
        """Write a line; first end a line of which only a part was accepted."""
        whole = unsent = ("\n" * self._torn + line).encode(errors="backslashreplace")
        try:
            while unsent and self._poll.poll(0):
                unsent = unsent[os.write(self._descriptor, unsent[:MAX_WRITE_BYTES]) :]
        except OSError:
            pass  # its reader has closed it, or the disk is full
        if len(unsent) < len(whole):
            self._torn = bool(unsent)
        return not unsent

    def is_journal(self, environ: Mapping[str, str]) -> bool:
        """Return whether systemd's journal reads it: JOURNAL_STREAM names its file."""
        try:
            file = os.fstat(self._descriptor)
        except OSError:
            return False
        return environ.get("JOURNAL_STREAM") == f"{file.st_dev}:{file.st_ino}"


def _nonblocking(number: int) -> int:
    """Return the descriptor; for a terminal, a new one that does not block.

    A terminal that is ready for a write may have no room for a whole line.
    """
    try:
        name = os.ttyname(number)
        return os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return number


class LogFile(logfile.LogFile):
    """Twisted's log file, which rotates itself, as an outlet.

    Other programs may move or truncate it.
    """

    def _openFile(self) -> None:  # noqa: N802 - Twisted's name
        super()._openFile()
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)

    def write(self, line: str) -> bool:
        data = line.encode(errors="backslashreplace")
        try:
            if self._file.closed or self.shouldRotate():
                self.rotate()
            written = self._file.write(data)
            if written < len(data):  # the disk is full: remove the torn line
                self._file.seek(-written, os.SEEK_CUR)
                self._file.truncate()
                return False
            self.size = self._file.tell()
        except OSError:
            return False
        return True

    def rotate(self) -> None:
        """Rotate; if that fails, continue with the open file, or open one again."""
        with suppress(OSError):
            super().rotate()
        if self._file.closed:
            self._openFile()

    def reopen(self) -> None:
        """Open the path again; if that fails, continue with the open file."""
        before = self._file
        try:
            self._openFile()
        except OSError as error:
            if self._file is not before:  # a pipe, which was opened all the same
                os.dup2(before.fileno(), self._file.fileno(), inheritable=False)
            log.warn("cannot reopen the log file: {error}", error=error.strerror)
        else:
            before.close()

    def renew(self) -> None:
        """Begin a new file; rotate this one unless another program has moved it."""
        if self._is_moved():
            self.reopen()
        else:
            self.rotate()

    def _is_moved(self) -> bool:
        try:
            return not os.path.samestat(
                os.stat(self.path), os.fstat(self._file.fileno())
            )
        except OSError:
            return True

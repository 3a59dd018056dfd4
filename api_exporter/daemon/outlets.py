"""Outlets of log lines: one takes a line at once or not at all, so none holds us up."""

import os
import select
from collections.abc import Mapping
from typing import Protocol

from twisted.logger import Logger
from twisted.python import logfile

MOST_AT_ONCE = 4096
"""Bytes: as many as a pipe takes without a wait, where it takes any."""

ROTATED_AT = 10_000_000
"""Bytes of a log file at which a new one begins."""

ROTATED_FILES = 9
"""Rotated log files that stay: older ones are removed."""

log = Logger()


class Outlet(Protocol):
    """Takes lines."""

    def write(self, line: str) -> bool:
        """Whether the whole line was taken. It never waits and never raises."""
        ...


class Stream:
    """A descriptor that was given to us, and that others may use as well.

    It stays as it is, blocking or not: we look before we write.
    """

    def __init__(self, number: int) -> None:
        self._number = _unwaited(number)
        self._poll = select.poll()
        self._poll.register(self._number, select.POLLOUT)
        self._torn = False

    def write(self, line: str) -> bool:
        """What was left of a line when nobody took more is ended before the next."""
        whole = rest = ("\n" * self._torn + line).encode(errors="backslashreplace")
        try:
            while rest and self._takes():
                rest = rest[os.write(self._number, rest[:MOST_AT_ONCE]) :]
        except OSError:
            pass  # its reader has gone, or the disk is full
        if len(rest) < len(whole):
            self._torn = bool(rest)
        return not rest

    def _takes(self) -> bool:
        return any(event & select.POLLOUT for _, event in self._poll.poll(0))

    def is_journal(self, environ: Mapping[str, str]) -> bool:
        """Whether systemd's journal reads it: JOURNAL_STREAM names its file."""
        try:
            file = os.fstat(self._number)
        except OSError:
            return False
        return environ.get("JOURNAL_STREAM") == f"{file.st_dev}:{file.st_ino}"


def _unwaited(number: int) -> int:
    """The same, or a terminal opened once more, by us and without waits.

    A terminal that has room for something may have none for a whole line.
    """
    try:
        name = os.ttyname(number)
        return os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return number


class LogFile(logfile.LogFile):
    """Twisted's, which rotates by itself, as an outlet that others may move away."""

    def write(self, line: str) -> bool:
        try:
            super().write(line.encode(errors="backslashreplace"))
        except (OSError, ValueError):  # the latter where it could not be rotated
            return False
        return True

    def reopen(self) -> None:
        """Open what is there now under our name; where that fails, go on as before."""
        before = self._file
        try:
            self._openFile()
        except OSError as error:
            log.warn("cannot reopen the log file: {why}", why=error.strerror)
        else:
            before.close()

    def renew(self) -> None:
        """Begin a new file, beside ours, or where ours was before it was moved."""
        if self._moved():
            self.reopen()
        else:
            self.rotate()

    def _moved(self) -> bool:
        try:
            return not os.path.samestat(
                os.stat(self.path), os.fstat(self._file.fileno())
            )
        except FileNotFoundError:
            return True

"""Standard output for the lines of all accounts. Writes never block."""

import os
import select

MOST_AT_ONCE = 4096
"""Bytes that a writable pipe accepts whole and without blocking (PIPE_BUF)."""


class Output:
    """A file descriptor, which may be in blocking mode.

    The rest of a line that was written in part is written before other lines.
    """

    def __init__(self, number: int = 1) -> None:
        self._number = number
        self._poll = select.poll()
        self._poll.register(number, select.POLLOUT)
        self._begun = b""

    @property
    def flushed(self) -> bool:
        """True if all accepted lines are written completely."""
        return not self._begun

    def write(self, lines: bytes) -> int:
        """Write without blocking; return the accepted bytes of whole lines."""
        self._begun = self._begun[self._sent(self._begun) :]
        if self._begun:
            return 0
        sent = self._sent(lines)
        end = sent if lines[:sent].endswith(b"\n") else lines.find(b"\n", sent) + 1
        self._begun = lines[sent:end] if sent else b""
        return end if sent else 0

    def _sent(self, lines: bytes) -> int:
        sent = 0
        while sent < len(lines) and self._poll.poll(0):
            # Short lines are written whole, so a killed process leaves whole lines.
            most = min(sent + MOST_AT_ONCE, len(lines))
            end = lines.rfind(b"\n", sent, most) + 1 or most
            try:
                sent += os.write(self._number, lines[sent:end])
            except OSError:
                if not sent:
                    raise
                break
        return sent

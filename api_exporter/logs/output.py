"""Standard output for the lines of all accounts. Writes never block."""

import os
import select

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

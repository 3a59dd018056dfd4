"""Standard output, for the lines of all accounts: taken at once or not at all."""

import os
import select

MOST_AT_ONCE = 4096
"""Bytes: what a pipe takes whole and without a wait, where it takes any."""


class Output:
    """A descriptor that was given to us, and that may be blocking.

    What was begun of a line goes before all else.
    """

    def __init__(self, number: int = 1) -> None:
        self._number = number
        self._poll = select.poll()
        self._poll.register(number, select.POLLOUT)
        self._begun = b""

    @property
    def flushed(self) -> bool:
        """Whether every line that was taken is out."""
        return not self._begun

    def write(self, lines: bytes) -> int:
        """How many bytes of whole lines were taken; raises OSError. It never waits."""
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
            # Whole lines where they are short: who is killed then leaves whole ones.
            most = min(sent + MOST_AT_ONCE, len(lines))
            end = lines.rfind(b"\n", sent, most) + 1 or most
            try:
                sent += os.write(self._number, lines[sent:end])
            except OSError:
                if not sent:
                    raise
                break
        return sent

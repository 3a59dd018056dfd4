"""Output of commands without Twisted."""

import os
import sys


def write_line(line: str) -> None:
    """Write to standard output. What it does not accept is dropped: it is no failure.

    At its end, Python would try again, and end with status 120. Letters that its
    encoding lacks are escaped.
    """
    encoding = sys.stdout.encoding or "utf-8"
    line = line.encode(encoding, "backslashreplace").decode(encoding)
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

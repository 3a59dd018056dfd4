"""Output of commands without Twisted."""

import os
import sys
from io import TextIOWrapper


def escape_missing_letters() -> None:
    """Let standard output escape the letters that its encoding lacks."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def write_line(line: str) -> None:
    """Write to standard output. What it does not accept is dropped: it is no failure.

    At its end, Python would try again, and end with status 120.
    """
    escape_missing_letters()
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

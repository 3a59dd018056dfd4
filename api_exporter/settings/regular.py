"""Files that hold something short: read whole, and never for ever."""

import os
import stat
from pathlib import Path


def content(path: Path, most: int) -> bytes:
    """What a file holds; a pipe or a device could be waited for, or read, for ever.

    Args:
        most: bytes.

    Raises:
        OSError: it cannot be read.
        ValueError: it is none of ours.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError("it is no regular file")
        found = os.read(opened, most + 1)
    finally:
        os.close(opened)
    if len(found) > most:
        raise ValueError(f"it has more than {most} bytes")
    return found

"""Reading of regular files. `--health` needs it: this module imports little."""

import os
import stat
from pathlib import Path


def read_regular_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a file. A read of a pipe or device might never end.

    Raises OSError, or ValueError if the file is not a regular file or too long.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError("the file is not a regular file")
        content = os.read(opened, max_bytes + 1)
    finally:
        os.close(opened)
    if len(content) > max_bytes:
        raise ValueError(f"the file has more than {max_bytes} bytes")
    return content

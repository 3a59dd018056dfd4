"""The exporter in a world whose wall clock jumps.

To every reading of the wall clock it adds the seconds that stand in the file that
CLOCK_OFFSET names. The monotonic clock goes on, as when an operator sets the time.
"""

import os
import time
from pathlib import Path

_offset = Path(os.environ["CLOCK_OFFSET"])
_real = time.time


def _jumping() -> float:
    return _real() + float(_offset.read_text() or 0)


# Before anything of Twisted's is imported, for that keeps the function.
time.time = _jumping

from api_exporter.cli import main  # noqa: E402

if __name__ == "__main__":
    main()

"""Durations of tests.

With `TEST_DURATIONS=FILE`, trial appends a line for each test to a file.
`python -m tools.durations FILE` prints the slowest.
"""

import sys
import time
from pathlib import Path
from unittest import TestResult

from twisted.trial.unittest import SynchronousTestCase


def record(path: Path) -> None:
    """Append a line to the file after each test of this process."""
    run = SynchronousTestCase.run

    def timed(test: SynchronousTestCase, result: TestResult) -> None:
        start = time.perf_counter()
        run(test, result)
        with path.open("a") as file:
            file.write(f"{time.perf_counter() - start:8.2f} {test.id()}\n")

    SynchronousTestCase.run = timed  # type: ignore[method-assign]


def main() -> None:
    lines = Path(sys.argv[1]).read_text().splitlines()
    seconds = sum(float(line.split()[0]) for line in lines)
    slowest = "\n".join(sorted(lines)[:-21:-1])
    head = f"The slowest 20 of {len(lines)} tests of {seconds:.0f} s"
    sys.stdout.write(f"{head}:\n{slowest}\n")


if __name__ == "__main__":
    main()

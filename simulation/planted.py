"""Check that the simulation finds known bugs.

`python -m simulation.planted --days 30` plants each bug into a copy of the program. It
simulates three days of each seed, until an invariant is violated or the days are over.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

from msgspec import Struct

from tools.correctness import record_result

ROOT = Path(__file__).parents[1]

WORLD = 3.0
"""Days of one seed. Many short runs find more than a long one."""


class Bug(Struct, frozen=True):
    """A replacement of a text that a file contains exactly once."""

    name: str
    file: str
    right: str
    wrong: str


def bugs() -> Iterator[Bug]:
    """Yield the bugs of `planted.txt`: name, file, right and wrong text of each."""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        name, file, right, wrong = line.replace("\\n", "\n").split(" | ")
        yield Bug(name, f"{file}.py", right, wrong)


BUGS = tuple(bugs())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m simulation.planted", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("number", type=int, nargs="*", help="of a bug, from 1 on")
    options = parser.parse_args()
    for number in options.number or range(1, len(BUGS) + 1):
        bug = BUGS[number - 1]
        days, violated, seed = 0.0, "", options.seed - 1
        while not violated and days < options.days:
            seed += 1
            simulated, violated = find(bug, seed, min(WORLD, options.days - days))
            days = round(days + simulated, 2)
        print(
            f"{number}. {bug.name}: {violated or 'not found'}, {days:.2f} days",
            flush=True,
        )
        record_result("planted", bug.name, days=days, by=violated, seed=seed)


def find(bug: Bug, seed: int, days: float) -> tuple[float, str]:
    """Return the simulated days, and the violated invariant or ""."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        for name in ("api_exporter", "simulation", "tests", "tools"):
            shutil.copytree(ROOT / name, Path(folder) / name)
        file = Path(folder) / "api_exporter" / bug.file
        file.write_text(planted(bug, file.read_text()))
        child = run(
            [
                *(sys.executable, "-m", "simulation"),
                *("--seed", str(seed), "--days", str(days)),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    passed = re.search(r"^seed \d+: ([\d.]+) days", child.stdout, re.MULTILINE)
    broken = re.search(r"^step \d+: ([^:]+)", child.stdout, re.MULTILINE)
    if passed is None:  # The simulation failed before an invariant was checked.
        error = (child.stderr.splitlines() or [""])[-1].partition(":")[0]
        return 0.0, error.rpartition(".")[2]
    return float(passed[1]), "" if broken is None else broken[1]


def planted(bug: Bug, text: str) -> str:
    """Return a file's text with the bug in it."""
    assert text.count(bug.right) == 1, bug.name
    return text.replace(bug.right, bug.wrong)


if __name__ == "__main__":
    main()

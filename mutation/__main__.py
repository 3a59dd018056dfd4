"""The command: tries a sample of mutants, prints what survives, adds to the score."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from subprocess import DEVNULL, TimeoutExpired, run

from mutation.mutants import Mutant, mutants
from tests.correctness import results, tell

ROOT = Path(__file__).parents[1]

ROOMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "refresh": ("refresh/*.py", ("tests.test_account",)),
    "exposition": ("exposition/*.py", ("tests.collectors.test_incremental",)),
    "netbird": ("netbird/**/*.py", ("tests.reference.test_reference",)),
    "events": ("events/*.py", ()),
    "access": ("access/[acor]*.py", ("tests.web.test_pages",)),
    "settings": ("settings/*.py", ()),
}
"""Files, and tests of other rooms that are run, too."""

LONGEST = 600
"""Seconds that the tests may wait for something."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--room", choices=ROOMS)
    parser.add_argument("--minutes", type=float, default=600, help="at most")
    options = parser.parse_args()
    rooms = [options.room] if options.room else list(ROOMS)
    every = [(room, mutant) for room in rooms for mutant in of(room)]
    sample = Random(options.seed).sample(every, min(options.count, len(every)))
    tried: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    for room, mutant in sample:
        if time.monotonic() > end:
            break
        tried[room] += 1
        change, source = mutant.made()
        if noticed(room, mutant.path, source):
            killed[room] += 1
        else:
            print(f"{mutant.path.relative_to(ROOT)}:{change}", flush=True)
    for room, number in tried.items():
        print(f"{room}: {killed[room]} of {number}: {killed[room] / number:.0%}")
        before = results().get("mutation", {}).get(room, {})
        tell(
            "mutation",
            room,
            mutants=int(before.get("mutants", 0)) + number,
            killed=int(before.get("killed", 0)) + killed[room],
            seeds=f"{before.get('seeds', '')} {options.seed}".strip(),
        )
    print(f"of {len(every)} mutants, {sum(killed.values())} of {sum(tried.values())}")


def of(room: str) -> Iterator[Mutant]:
    """All mutants of a room."""
    for path in sorted((ROOT / "api_exporter").glob(ROOMS[room][0])):
        yield from mutants(path)


def noticed(room: str, path: Path, source: str) -> bool:
    """Whether a test fails, or hangs. Those of the same name are run first."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    first = ROOT / "tests" / path.relative_to(ROOT / "api_exporter")
    first = first.with_name(f"test_{first.name}")
    modules = sorted((ROOT / "tests" / room).rglob("test_*.py"))
    modules.sort(key=lambda path: path != first)
    names = [".".join(m.relative_to(ROOT).with_suffix("").parts) for m in modules]
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        file = Path(folder) / "mutant.py"
        file.write_text(source)
        try:
            child = run(
                [
                    *(sys.executable, "-m", "mutation.child", module, file),
                    *names,
                    *ROOMS[room][1],
                ],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "CI": "1"},
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                timeout=LONGEST,
                check=False,
            )
        except TimeoutExpired:
            return True
    return child.returncode != 0


if __name__ == "__main__":
    main()

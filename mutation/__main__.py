"""Test a sample of mutants, print the survivors and add to the score."""

import argparse
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from mutation import child
from mutation.mutants import Mutant, mutants
from tests.correctness import record_result, results

ROOMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "refresh": ("refresh/*.py", ("test_account", "test_service", "telemetry")),
    "exposition": ("exposition/*.py", ("collectors", "web/test_metrics")),
    "netbird": ("netbird/**/*.py", ("collectors", "attention", "reference")),
    "events": ("events/*.py", ("test_service", "telemetry")),
    "access": ("access/[acor]*.py", ("web", "serving")),
    "settings": ("settings/*.py", ("test_cli", "daemon")),
}
"""The files of each room, and additional tests of other rooms."""

SLOW = (
    *("refresh.test_fair_share", "refresh.test_schedule", "refresh.test_agent_network"),
    *("netbird.test_elements", "netbird.test_bodies", "netbird.test_agent_bodies"),
    "events.test_access_log",
)
"""Tests that take seconds. They run last."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--room", choices=ROOMS)
    parser.add_argument("--minutes", type=float, default=600, help="at most")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    os.environ["CI"] = "1"
    processes = multiprocessing.get_context("fork")
    rooms = [options.room] if options.room else list(ROOMS)
    every = [(room, mutant) for room in rooms for mutant in mutants_of(room)]
    sample = Random(options.seed).sample(every, min(options.count, len(every)))
    tried: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    with processes.Pool(options.processes, child.load) as pool:
        for room, is_killed, change in pool.imap_unordered(attempt, sample):
            tried[room] += 1
            killed[room] += is_killed
            if not is_killed:
                print(f"{sum(tried.values())}. {change}", flush=True)
            if time.monotonic() > end:
                break
    for room, number in sorted(tried.items()):
        print(f"{room}: {killed[room]} of {number}: {killed[room] / number:.0%}")
        before = results().get("mutation", {}).get(room, {})
        record_result(
            "mutation",
            room,
            mutants=int(before.get("mutants", 0)) + number,
            killed=int(before.get("killed", 0)) + killed[room],
            seeds=f"{before.get('seeds', '')} {options.seed}".strip(),
        )
    print(f"of {len(every)} mutants, {sum(killed.values())} of {sum(tried.values())}")


def mutants_of(room: str) -> Iterator[Mutant]:
    """Yield all mutants of a room."""
    for path in sorted((child.ROOT / "api_exporter").glob(ROOMS[room][0])):
        yield from mutants(path)


def tests(room: str, path: Path) -> list[str]:
    """Return the test modules, the one of the same name first."""
    folder = child.ROOT / "tests"
    own = modules(folder / room)
    others = [name for also in ROOMS[room][1] for name in modules(folder / also)]
    own.sort(
        key=lambda name: (not name.endswith(f".test_{path.stem}"), name[6:] in SLOW)
    )
    return own + others


def modules(path: Path) -> list[str]:
    """Return the test modules in a folder, or the one of this name."""
    paths = sorted(path.rglob("test_*.py")) or [path.with_suffix(".py")]
    return list(map(child.dotted, paths))


def attempt(chosen: tuple[str, Mutant]) -> tuple[str, bool, str]:
    """Test a mutant. Return its room, whether a test fails or hangs, and the change."""
    room, mutant = chosen
    line, change, source = mutant.made()
    is_killed = not child.passed(mutant.path, source, tests(room, mutant.path))
    return room, is_killed, f"{mutant.path.relative_to(child.ROOT)}:{line}: {change}"


if __name__ == "__main__":
    main()

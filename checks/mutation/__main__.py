"""Try a sample of mutants, print the survivors, and add the figures to the score."""

import argparse
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from checks.mutation import child
from checks.mutation.mutants import Mutant, mutants
from tools.correctness import record_result, results

ROOT_TESTS = (
    *("test_account", "test_cli", "test_entry", "test_live", "test_service"),
    *(
        "test_start",
        "test_version",
        "test_world",
        "checking/test_run",
        "refresh/test_transitions",
    ),
    *("upstream/test_failures", "upstream/test_fetcher", "upstream/test_tls_policy"),
    "report/test_formatting",
)

ROOMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "access": ("access/*.py", ("web", "serving")),
    "attention": ("attention/*.py", ("subjects", "web/status")),
    "checking": ("checking/*.py", ("test_cli",)),
    "collectors": ("collectors/*.py", ("test_golden", "reference", "joins")),
    "daemon": ("daemon/*.py", ("test_service", "settings")),
    "demo": ("demo/*.py", ("company", "test_service")),
    "logs": ("logs/*.py", ("test_service", "telemetry")),
    "exposition": ("exposition/*.py", ("collectors", "web/test_metrics")),
    "netbird": (
        "netbird/**/*.py",
        ("collectors", "attention", "reference", "joins", "test_roles"),
    ),
    "profiling": ("profiling/*.py", ("web",)),
    "refresh": (
        "refresh/*.py",
        ("test_account", "test_service", "test_roles", "telemetry", "joins/test_early"),
    ),
    "report": ("report/*.py", ("checking", "web/status")),
    "root": ("*.py", ROOT_TESTS),
    "serving": ("serving/*.py", ("web", "test_service")),
    "settings": ("settings/*.py", ("test_cli", "daemon")),
    "subjects": (
        "subjects/**/*.py",
        (
            *("attention", "collectors", "company", "joins", "netbird", "reference"),
            *("checking/test_report", "test_golden", "test_roles", "web/status"),
        ),
    ),
    "telemetry": ("telemetry/*.py", ("test_account", "refresh", "web")),
    "upstream": ("upstream/*.py", ("test_account", "refresh")),
    "web": ("web/**/*.py", ("test_service", "access", "exposition")),
}
"""The files of each room, and additional tests of other rooms."""

LONG = (
    *("refresh.test_turns", "refresh.test_schedule", "refresh.test_agent_network"),
    *("netbird.test_elements", "netbird.test_bodies", "subjects.test_agent_bodies"),
    "logs.test_access_log",
)
"""Tests that take seconds. They run last."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m checks.mutation", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="mutants of each room")
    parser.add_argument("--room", choices=ROOMS, action="append")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--first", action="store_true", help="before new tests")
    options = parser.parse_args()
    os.environ["CI"] = "1"
    sample = [
        (room, mutant)
        for room in options.room or ROOMS
        for mutant in chosen(room, options.seed, options.count)
    ]
    tried: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    fork = multiprocessing.get_context("fork")
    with fork.Pool(options.processes, child.load) as pool:
        broken = list(pool.imap(unharmed, {room for room, _ in sample}))
        if any(broken):
            parser.error(f"tests fail without any mistake: {' '.join(broken)}")
        for room, noticed, change in pool.imap_unordered(attempt, sample):
            tried[room] += 1
            killed[room] += noticed
            if not noticed:
                print(f"{sum(tried.values())}. {change}", flush=True)
    for room, number in sorted(tried.items()):
        print(f"{room}: {killed[room]} of {number}: {killed[room] / number:.0%}")
        add(room, options.seed, number, killed[room], first=options.first)
    print(f"{sum(killed.values())} of {sum(tried.values())}")


def chosen(room: str, seed: int, count: int) -> list[Mutant]:
    """Return a sample of a room's mutants, or all if there are no more."""
    every = list(mutants_of(room))
    return Random(f"{room} {seed}").sample(every, min(count, len(every)))


def unharmed(room: str) -> str:
    """Return the room's name if its tests fail without a mistake, else ""."""
    path = next(mutants_of(room)).path
    return "" if child.passed(path, path.read_text(), tests(room, path)) else room


def add(room: str, seed: int, mutants: int, killed: int, *, first: bool) -> None:
    """Add figures to those of the room in tools/correctness.json."""
    figures = results().get("mutation", {}).get(room, {})
    before = "first_" if first else ""
    for name, number in {"mutants": mutants, "killed": killed}.items():
        figures[before + name] = int(figures.get(before + name, 0)) + number
    figures[f"{before}seeds"] = f"{figures.get(f'{before}seeds', '')} {seed}".strip()
    record_result("mutation", room, **figures)


def mutants_of(room: str) -> Iterator[Mutant]:
    """Yield all mutants of a room."""
    for path in sorted((child.ROOT / "api_exporter").glob(ROOMS[room][0])):
        if path.name != "_version.py":  # written by incremental
            yield from mutants(path)


def tests(room: str, path: Path) -> list[str]:
    """Return the test modules, the one of the same name first."""
    folder = child.ROOT / "tests"
    own = found(folder / room) if (folder / room).exists() else []
    others = [name for also in ROOMS[room][1] for name in found(folder / also)]
    own.sort(
        key=lambda name: (not name.endswith(f".test_{path.stem}"), name[6:] in LONG)
    )
    return own + others


def found(path: Path) -> list[str]:
    """Return the test modules in a folder, or the module of this name."""
    paths = sorted(path.rglob("test_*.py")) or [path.with_suffix(".py")]
    return list(map(child.dotted, paths))


def attempt(choice: tuple[str, Mutant]) -> tuple[str, bool, str]:
    """Return the room, whether a test fails or hangs, and the change."""
    room, mutant = choice
    line, change, source = mutant.made()
    noticed = not child.passed(mutant.path, source, tests(room, mutant.path))
    return room, noticed, f"{mutant.path.relative_to(child.ROOT)}:{line}: {change}"


if __name__ == "__main__":
    main()

"""Try a sample of mutants, print the survivors, and add the figures to the score."""

import argparse
import hashlib
import json
import multiprocessing
import os
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from multiprocessing.pool import Pool
from pathlib import Path
from random import Random

from checks.mutation import child
from checks.mutation.check import is_refused
from checks.mutation.mistakes import Mistake, mistakes, sample
from checks.mutation.mutants import Mutant, mutants
from checks.mutation.reach import Tests, block, reached
from tools.correctness import record_result, results

ROOT_TESTS = (
    *("test_account", "test_cli", "test_entry", "test_live", "test_service"),
    *(
        "test_accounts",
        "test_version",
        "simulation/test_run",
        "checking/test_report_command",
        "refresh/test_transitions",
    ),
    *("upstream/test_failures", "upstream/test_fetcher", "upstream/test_tls_policy"),
    "report/test_formatting",
)

PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "access": ("access/*.py", ("web", "serving")),
    "attention": ("attention/*.py", ("subjects", "test_documents", "web/status")),
    "checking": ("checking/*.py", ("test_cli",)),
    "collectors": ("collectors/*.py", ("reference", "test_documents")),
    "daemon": ("daemon/*.py", ("test_service", "settings")),
    "demo": ("demo/*.py", ("company", "test_service")),
    "logs": ("logs/*.py", ("test_service", "telemetry")),
    "exposition": (
        "exposition/*.py",
        ("collectors", "test_documents", "web/test_metrics"),
    ),
    "netbird": (
        "netbird/**/*.py",
        ("collectors", "attention", "reference", "subjects", "test_roles"),
    ),
    "profiling": ("profiling/*.py", ("web",)),
    "refresh": (
        "refresh/*.py",
        ("test_account", "test_live", "test_service", "test_roles", "telemetry"),
    ),
    "report": (
        "report/*.py",
        ("checking", "web/status", "web/test_probes_status_json"),
    ),
    "root": ("*.py", ROOT_TESTS),
    "serving": ("serving/*.py", ("web", "test_service")),
    "settings": ("settings/*.py", ("daemon", "test_cli", "test_documents")),
    "subjects": (
        "subjects/**/*.py",
        (
            *("attention", "collectors", "company", "netbird", "reference"),
            *("checking/test_report", "test_documents", "test_roles"),
            "web/status",
        ),
    ),
    "telemetry": ("telemetry/*.py", ("test_account", "refresh", "web")),
    "upstream": ("upstream/*.py", ("test_account", "refresh")),
    "web": ("web/**/*.py", ("test_service", "access", "exposition")),
}
"""The files of each package, and additional tests of other packages."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m checks.mutation", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="mutants of each package")
    parser.add_argument("--mistakes", type=int, help="try so many mistakes of people")
    parser.add_argument("--package", choices=PACKAGES, action="append")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    os.environ["CI"] = "1"
    packages = options.package or PACKAGES
    sampled: Sequence[tuple[str, Mutant | Mistake]]
    if options.mistakes:
        every = ((package, one) for package in packages for one in mistakes_of(package))
        sampled = sample(every, options.seed, options.mistakes)
    else:
        sampled = [
            (package, mutant)
            for package in packages
            for mutant in chosen(package, options.seed, options.count)
        ]
    tried: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    fork = multiprocessing.get_context("fork")
    with fork.Pool(options.processes, child.load) as pool:
        known, at_import = reach(pool)
        print(f"{len(known)} tests pass without a mistake", flush=True)
        choices = (
            (package, mutant, chosen_tests(package, mutant, known, at_import))
            for package, mutant in sampled
        )
        for package, mutant, noticed in pool.imap_unordered(attempt, choices):
            subject = mutant.kind if isinstance(mutant, Mistake) else package
            tried[subject] += 1
            killed[subject] += noticed
            if not noticed:
                line, change, source = mutant.made()
                by_check = options.mistakes and is_refused(mutant.path, source)
                refused[subject] += bool(by_check)
                place = f"{mutant.path.relative_to(child.ROOT)}:{line}"
                end = " (refused by the checks)" if by_check else ""
                print(f"{tried.total()}. {place}: {change}{end}", flush=True)
                if options.mistakes and not by_check:
                    record_survivor(f"{place.partition(':')[0]}: {change}")
    kind = "mistakes" if options.mistakes else "mutation"
    for subject, number in sorted(tried.items()):
        found = killed[subject]
        print(f"{subject}: {found} of {number}: {found / number:.0%}")
        figures = {"mutants": number, "killed": found}
        if options.mistakes:
            figures["refused"] = refused[subject]
        add(kind, subject, options.seed, figures)
    print(f"{killed.total()} of {tried.total()}, {refused.total()} more by the checks")


def reach(pool: Pool) -> tuple[Tests, set[str]]:
    """Return all tests, and the blocks that imports reach; kept for the same code."""
    digest = hashlib.sha256()
    for top in ("api_exporter", "simulation", "tests"):
        for path in sorted((child.ROOT / top).rglob("*.py")):
            digest.update(path.read_bytes())
    file = child.ROOT / f"build/reach-{digest.hexdigest()[:16]}.json"
    if not file.exists():
        known: Tests = {}
        for found in pool.imap_unordered(reached, units()):
            at_import = known.get("", (0.0, []))[1]
            known |= {**found, "": (0.0, at_import + found.get("", (0.0, []))[1])}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(known))
    known = json.loads(file.read_text())
    return known, set(known.pop("")[1])


def chosen(package: str, seed: int, count: int) -> list[Mutant]:
    """Return a sample of a package's mutants, or all if there are no more."""
    every = list(mutants_of(package))
    return Random(f"{package} {seed}").sample(every, min(count, len(every)))


def add(kind: str, subject: str, seed: int, found: Mapping[str, int]) -> None:
    """Add figures to those of a package or kind in tools/correctness.json."""
    figures = results().get(kind, {}).get(subject, {})
    for name, number in found.items():
        figures[name] = int(figures.get(name, 0)) + number
    figures["seeds"] = f"{figures.get('seeds', '')} {seed}".strip()
    record_result(kind, subject, **figures)


def record_survivor(name: str) -> None:
    """Add a mistake to those whose reason to live is written by hand."""
    if name not in results().get("survivors", {}):
        record_result("survivors", name, why="not judged")


def modules(package: str) -> Iterator[Path]:
    for path in sorted((child.ROOT / "api_exporter").glob(PACKAGES[package][0])):
        if path.name != "_version.py":  # written by incremental
            yield path


def mutants_of(package: str) -> Iterator[Mutant]:
    return chain.from_iterable(map(mutants, modules(package)))


def mistakes_of(package: str) -> Iterator[Mistake]:
    return chain.from_iterable(map(mistakes, modules(package)))


def chosen_tests(
    package: str, mutant: Mutant | Mistake, known: Tests, at_import: Container[str]
) -> list[str]:
    """Return the tests of the package, and of modules that import the mutant's module.

    Of a block in a function only those that run it, the shortest first, and before
    them those of the module of the same name.
    """
    path, line = mutant.path, mutant.made()[0]
    module = re.compile(rf"(from|import) {re.escape(child.dotted(path))}\b")
    folder = child.ROOT / "tests"
    modules = {
        name
        for also in (package, "test_golden", *PACKAGES[package][1])
        for name in found(folder / also)
    }
    modules.update(name for name in units() if module.search(source_of(name)))
    place = block(path, line)
    is_always = not place or place in at_import
    tests = (
        (f".test_{path.stem}." not in name, seconds, name)
        for name, (seconds, blocks) in known.items()
        if name.rsplit(".", 2)[0] in modules and (is_always or place in blocks)
    )
    return [name for *_, name in sorted(tests)]


@cache
def units() -> list[str]:
    """Return all test modules that start no programs."""
    programs = ("tests.deploy.", "tests.integration.")
    every = map(child.dotted, sorted((child.ROOT / "tests").rglob("test_*.py")))
    return [name for name in every if not name.startswith(programs)]


@cache
def source_of(name: str) -> str:
    return (child.ROOT / f"{name.replace('.', '/')}.py").read_text()


def found(path: Path) -> list[str]:
    """Return the test modules in a folder, or the module of this name."""
    paths = sorted(path.rglob("test_*.py"))
    if path.with_suffix(".py").exists():
        paths.append(path.with_suffix(".py"))
    return list(map(child.dotted, paths))


def attempt(
    choice: tuple[str, Mutant | Mistake, list[str]],
) -> tuple[str, Mutant | Mistake, bool]:
    """Return the package, the mutant, and whether a test fails or hangs."""
    package, mutant, tests = choice
    _, _, source = mutant.made()
    return package, mutant, not child.passed(mutant.path, source, tests)


if __name__ == "__main__":
    main()

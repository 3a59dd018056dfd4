"""Fuzz, keep the best inputs and write tools/correctness.json."""

import argparse
import re
import resource
import sys
from importlib import import_module
from pathlib import Path
from subprocess import run

from checks.fuzz import TARGETS, corpus
from tools.correctness import record_result, results

BUILD = Path("build/fuzz")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m checks.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=f"of {', '.join(TARGETS)}; or all")
    parser.add_argument("--minutes", type=float, default=15)
    options = parser.parse_args()
    for target in options.target or TARGETS:
        fuzz(target, options.minutes)


def fuzz(target: str, minutes: float) -> None:
    """Fuzz one target for some minutes. Exit if a property does not hold."""
    module = import_module(f"checks.fuzz.{target}")
    folder, found = BUILD / target, BUILD / f"{target}-found"
    for path in (folder, found):
        path.mkdir(parents=True, exist_ok=True)
    known = [*module.SEEDS, *corpus.load(target)]
    for number, one in enumerate(known):
        (folder / f"known-{number}").write_bytes(one)
    begin = processor_seconds()
    child = run(
        [
            *(sys.executable, "-m", "checks.fuzz.child", target, folder),
            f"-max_total_time={minutes * 60:.0f}",
            f"-artifact_prefix={found}/",
            *("-print_final_stats=1", "-max_len=4096", "-timeout=10"),
            "-rss_limit_mb=1024",
        ],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    (BUILD / f"{target}.log").write_text(child.stderr + child.stdout)
    if child.returncode:
        print(*(child.stderr + child.stdout).splitlines()[-40:], sep="\n")
        sys.exit(f"{target}: see {BUILD / target}.log; the input is in {found}")
    executions = re.search(r"number_of_executed_units: *(\d+)", child.stderr)
    assert executions is not None
    spent = (processor_seconds() - begin) / 60
    before = results().get("fuzz", {}).get(target, {})
    record_result(
        "fuzz",
        target,
        minutes=round(float(before.get("minutes", 0)) + spent, 1),
        executions=int(before.get("executions", 0)) + int(executions[1]),
    )
    every = (path.read_bytes() for path in folder.iterdir())
    corpus.keep(target, corpus.best(module.attempt, every))
    print(f"{target}: {executions[1]} inputs in {spent:.1f} minutes, nothing found")


def processor_seconds() -> float:
    """Return processor seconds of the children, which are independent of other load."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()

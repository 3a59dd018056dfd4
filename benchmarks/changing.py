"""What a refresh costs when little changes, and when all does.

`python -m benchmarks.changing [--peers N] [--beside TREE]` asks this tree, and another
one of the program in turns with it, so that both have the same weather. Each kind of
change has rows of processor time and of the longest stall; the smallest of all turns
counts, because others use the machine, too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import servers
from benchmarks.processes import ROOT
from benchmarks.upstream import KINDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changing")
    parser.add_argument("--peers", type=int, default=10_000)
    parser.add_argument("--beside", type=Path, help="another tree of the program")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="of each turn")
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    trees = [tree for tree in (options.beside, ROOT) if tree is not None]
    for kind in options.kind or KINDS:
        figures: dict[Path, list[dict[str, float]]] = {tree: [] for tree in trees}
        with (
            tempfile.TemporaryDirectory(prefix="api-exporter-bench-") as name,
            servers.upstream(options.peers, Path(name), kind) as upstream,
        ):
            for _ in range(options.turns):
                for tree in trees:
                    figures[tree].append(
                        told(refreshed(tree, upstream, options.rounds))
                    )
        report(kind, figures)


def refreshed(tree: Path, upstream: int, rounds: int) -> dict[str, Any]:
    """Figures of full refreshes, as the tree's own `benchmarks.refreshing` finds."""
    command = [sys.executable, "-m", "benchmarks.refreshing"]
    ran = subprocess.run(
        [*command, f"http://127.0.0.1:{upstream}", str(rounds)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def told(found: dict[str, Any]) -> dict[str, float]:
    """The rows of one turn."""
    series = found["series"]
    changed = min(each["cpu"] for each in found["full"])
    middle = statistics.median(each["cpu"] for each in found["full"])
    return {
        "changed: CPU, ms": changed * 1e3,
        "changed: median CPU, ms": middle * 1e3,
        "changed: CPU per series, µs": changed / series * 1e6,
        "unchanged: CPU, ms": min(each["cpu"] for each in found["unchanged"]) * 1e3,
        "first: CPU, ms": found["first"]["cpu"] * 1e3,
        "longest stall, ms": min(found["stalls"]) * 1e3,
    }


def report(kind: str, figures: dict[Path, list[dict[str, float]]]) -> None:
    """A line for each row, with the ratio of the last tree to the first."""
    trees = list(figures)
    for row in figures[trees[0]][0]:
        least = [min(turn[row] for turn in figures[tree]) for tree in trees]
        values = "  ".join(f"{value:10.4g}" for value in least)
        ratio = f"{least[-1] / least[0]:6.2f}" if len(trees) > 1 else ""
        print(f"{kind:12} {row:30} {values} {ratio}", flush=True)


if __name__ == "__main__":
    main()

"""The cost of a refresh if little changes, and if all records change.

`make bench BENCH="--beside TREE"` measures this tree and another one alternately, so
that both run under the same load. The minimum of all runs counts, because other
processes use the machine, too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checks.benchmarks import profiles, servers, starting
from checks.benchmarks.processes import ROOT
from checks.benchmarks.table import Table

CHANGED = "changed: CPU, ms"
PER_SERIES = "changed: CPU per series, µs"
UNCHANGED = "unchanged: CPU, ms"

MAX_RATIOS = {
    "passing": {10_000: 0.6, 100_000: 0.65},
    "still": {10_000: 0.5},
    "everything": {10_000: 1.1},
}
"""The largest ratios of processor time to the other tree's, by kind and peers."""

MAX_CLOCK_RATIO = 2.0
"""The largest ratio of a refresh in which `last_seen` of connected peers moves, to one
without any change."""

MAX_MEMORY_RATIO = 1.15
"""The largest ratio of peak memory, with 50,000 peers."""

Figures = dict[Path, list[dict[str, float]]]


def turns(trees: Sequence[Path], peers: int, kind: str, rounds: int) -> Figures:
    """Return the figures of each tree, measured three times alternately."""
    figures: Figures = {tree: [] for tree in trees}
    with servers.upstream_and_folder(peers, kind) as (upstream, _):
        for _ in range(3):
            for tree in trees:
                figures[tree].append(
                    rows_of(profiles.refreshed(upstream, rounds, tree=tree))
                )
    return figures


def compare(table: Table, peers: int, beside: Path) -> None:
    """Put the ratios of this tree to another one, each of the minimum of all runs."""
    many = max(MAX_RATIOS["passing"])
    for kind, targets in MAX_RATIOS.items():
        if peers not in targets:
            continue
        found = turns((beside, ROOT), peers, kind, 2 if peers == many else 5)
        for row, wanted in ((PER_SERIES, targets), (UNCHANGED, {})):
            before, now = (min(turn[row] for turn in each) for each in found.values())
            name = f"{kind}, {row.rpartition(',')[0]}, beside the other tree"
            table.put(name, peers, now / before, "ratio", wanted)


def measure_clock(table: Table, peers: int) -> None:
    """Put the processor time of a refresh in which only `last_seen` moves."""
    rows = turns((ROOT,), peers, "clock", rounds=8)[ROOT]
    moved, unchanged = (min(turn[row] for turn in rows) for row in (CHANGED, UNCHANGED))
    table.put("last_seen moves: CPU", peers, moved, "ms")
    targets = dict.fromkeys((1_000, 10_000, 100_000), MAX_CLOCK_RATIO)
    table.put(
        "last_seen moves, beside unchanged", peers, moved / unchanged, "ratio", targets
    )


def compare_memory(
    table: Table, peers: int, upstream: int, directory: Path, beside: Path
) -> None:
    """Put the ratio of this tree's peak memory to another one's."""
    before, now = (
        starting.memory_after(upstream, directory, rounds=3, PYTHONPATH=str(tree)).peak
        for tree in (beside, ROOT)
    )
    name = "peak memory, beside the other tree"
    table.put(name, peers, now / before, "ratio", {peers: MAX_MEMORY_RATIO})


def rows_of(found: dict[str, Any]) -> dict[str, float]:
    """Return the rows of one run."""
    changed = min(each["cpu"] for each in found["full"])
    return {
        CHANGED: changed * 1e3,
        PER_SERIES: changed / found["series"] * 1e6,
        UNCHANGED: min(each["cpu"] for each in found["unchanged"]) * 1e3,
    }

"""The cost of detail: three profiles, side by side.

`python -m checks.benchmarks.profiles` prints series and bytes at several sizes.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from checks.benchmarks import servers, starting
from checks.benchmarks.processes import module
from checks.benchmarks.table import Table
from tests.integration.programs import ROOT

PROFILES: Mapping[str, Mapping[str, str]] = {
    "all": {},
    "servers": {"PEER_DETAIL": "groups:servers"},
    "totals": {"PEER_DETAIL": "none", "METRICS_DENY": "netbird_api_user_*"},
}

SIZES = (1_000, 10_000, 100_000)

MAX_TOTALS_SHARE = 0.4
"""The largest share of a full refresh's processor time for totals alone."""

MAX_TOTALS_BYTES = 300_000
"""The most bytes of the page of totals."""


def refreshed(
    upstream: int, rounds: int, settings: Mapping[str, str] = PROFILES["all"]
) -> dict[str, Any]:
    """Return figures of full refreshes, by `checks.benchmarks.refreshing`."""
    url = f"http://127.0.0.1:{upstream}"
    words = [f"{name}={value}" for name, value in settings.items()]
    ran = subprocess.run(
        module("checks.benchmarks.refreshing", url, rounds, *words),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def measure(table: Table, peers: int, upstream: int, directory: Path) -> None:
    """Put the rows of each profile: its page, a refresh's processor time, memory. Each
    is measured twice. The better result counts, because the machine may be busy.
    """
    spent = dict.fromkeys(PROFILES, float("inf"))
    for _ in range(2):
        for name, settings in PROFILES.items():
            found = refreshed(upstream, 5, settings)
            spent[name] = min(spent[name], statistics.median(found["full"]))
            table.put(f"profile {name}: series", peers, found["series"], "count")
            wanted = {peers: MAX_TOTALS_BYTES / 1e3} if name == "totals" else None
            kilobytes = found["bytes"] / 1e3
            table.put(f"profile {name}: page", peers, kilobytes, "kB", wanted)
    for name, settings in PROFILES.items():
        table.put(f"profile {name}: refresh CPU", peers, spent[name] * 1e3, "ms")
        memory = starting.memory_after(upstream, directory, 3, **settings).peak
        table.put(f"profile {name}: peak memory", peers, memory, "MiB")
    share = spent["totals"] / spent["all"]
    name = "profile totals: share of a refresh"
    table.put(name, peers, share, "ratio", {peers: MAX_TOTALS_SHARE})


def published() -> Iterator[str]:
    """Yield a Markdown table: series and bytes of each profile at each size."""
    yield "| profile | " + " | ".join(f"{size:,} peers" for size in SIZES) + " |"
    yield "| --- |" + " ---: |" * len(SIZES)
    cells: dict[str, list[str]] = {name: [] for name in PROFILES}
    for size in SIZES:
        with servers.upstream_and_folder(size) as upstream:
            for name, settings in PROFILES.items():
                found = refreshed(upstream, 1, settings)
                cells[name].append(
                    f"{found['series']:,} series, {found['bytes'] / 1e6:.2f} MB"
                )
    for name, row in cells.items():
        yield f"| {name} | " + " | ".join(row) + " |"


if __name__ == "__main__":
    for line in published():
        print(line, flush=True)

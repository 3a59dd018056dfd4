"""The cost of a refresh in which only `last_seen` of the connected peers moves."""

from checks.benchmarks import profiles, servers
from checks.benchmarks.table import Table

MAX_CLOCK_RATIO = 2.0
"""The largest ratio of its processor time to that of a refresh without any change."""

SIZES = (1_000, 10_000, 100_000)


def measure_clock(table: Table, peers: int) -> None:
    """Put its processor time. The minimum counts, because the machine may be busy."""
    with servers.upstream_and_folder(peers, "clock") as (upstream, _):
        found = profiles.refreshed(upstream, rounds=12)
    moved, unchanged = (
        min(each["cpu"] for each in found[kind]) for kind in ("full", "unchanged")
    )
    table.put("last_seen moves: CPU", peers, moved * 1e3, "ms")
    targets = dict.fromkeys(SIZES, MAX_CLOCK_RATIO)
    name = "last_seen moves, beside unchanged"
    table.put(name, peers, moved / unchanged, "ratio", targets)

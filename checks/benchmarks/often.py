"""The cost of a refresh of the peers every five seconds.

The real daemon runs with `REFRESH_INTERVALS=peers=5s`. One in a hundred peers changes
every five seconds: for the memory, all are renamed. A gzip scrape follows every 15
seconds.
"""

import time
from pathlib import Path

from checks.benchmarks import servers, starting
from checks.benchmarks.client import Client, wait
from checks.benchmarks.table import Table

INTERVAL = 5.0
"""Seconds between two refreshes, and between two changes."""

REFRESHES = 24
"""Refreshes that are measured."""

REFRESHES_PER_SCRAPE = 3
"""Refreshes for each scrape."""

MAX_SHARE = 0.05
"""The largest share of a core with 10,000 peers."""

MAX_MEMORY = 100.0
"""MiB with 10,000 peers of which each is renamed before each refresh."""


def measure(table: Table, peers: int, directory: Path) -> None:
    with servers.upstream(peers, directory, "few") as upstream:
        share, _ = use(upstream, directory)
    targets = {peers: MAX_SHARE * 100}
    table.put("peers=5s, with scrapes: processor", peers, share * 100, "%", targets)
    with servers.upstream(peers, directory, "names") as upstream:
        _, peak = use(upstream, directory)
    targets = {peers: MAX_MEMORY}
    table.put("all names change: peak memory", peers, peak, "MiB", targets)


def use(upstream: int, directory: Path) -> tuple[float, float]:
    """Return the daemon's share of a core and its peak memory in MiB, with scrapes."""
    pace = {"REFRESH_INTERVALS": f"peers={INTERVAL:.0f}s"}
    with servers.daemon(upstream, directory, **pace) as daemon:
        wait(daemon, "/health")
        client, changes = Client(daemon.port), Client(upstream)
        starting.wait_for_all(daemon, client)
        time.sleep(INTERVAL)
        cpu, begin = daemon.cpu, time.monotonic()
        for look in range(REFRESHES):
            changes.get("/tick")
            if look % REFRESHES_PER_SCRAPE == 0:
                client.time("/metrics", "Accept-Encoding: gzip")
            time.sleep(max(0.0, begin + (look + 1) * INTERVAL - time.monotonic()))
        share = (daemon.cpu - cpu) / (time.monotonic() - begin)
        return share, daemon.memory("VmHWM")

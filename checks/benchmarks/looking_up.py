"""The cost of `/lookup`: single look-ups, and the whole table."""

import json
import statistics
import time
from pathlib import Path

from checks.benchmarks import servers
from checks.benchmarks.client import Client, wait
from checks.benchmarks.scraping import percentile
from checks.benchmarks.table import Table

TIMES = 2_000
"""The number of look-ups."""

MIDDLE = 10_000
MS = 1e3


def measure(table: Table, peers: int, upstream: int, directory: Path) -> None:
    """Look up every kind of key of different peers, then request the tables."""
    settings = {"REFRESH_INTERVALS": servers.ONCE, "LOOKUP": "true"}
    with servers.daemon(upstream, directory, **settings) as daemon:
        wait(daemon, "/lookup.json")
        client = Client(daemon.port)
        while b'"starting"' in client.get("/status.json"):  # the first refreshes
            time.sleep(0.1)
        rows = json.loads(client.get("/lookup.json"))
        queries = [
            f"/lookup?{parameter}={row[field]}"
            for row in rows[:: max(1, len(rows) * 3 // TIMES)]
            for parameter, field in (
                ("address", "address"),
                ("address", "ipv6"),
                ("name", "dns_name"),
            )
            if row[field]
        ]
        seconds = [client.time(query)[0] for query in queries]
        p99 = percentile(seconds, 0.99) * MS
        table.put("/lookup: p99", peers, p99, "ms", {MIDDLE: 1})
        for path in ("/lookup.csv", "/lookup.json"):
            took = statistics.median(client.time(path)[0] for _ in range(50))
            table.put(f"{path}: median", peers, took * MS, "ms", {MIDDLE: 5})
        client.close()

"""Run all benchmarks, print one table and write build/bench.json."""

import argparse
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checks.benchmarks import looking_up, often, profiles, scraping, servers, starting
from checks.benchmarks.client import Client, wait
from checks.benchmarks.processes import Program, empty_folder
from checks.benchmarks.scraping import Scrapes, percentile
from checks.benchmarks.table import Table

SMALL, SOME, MIDDLE, LARGE = 100, 1_000, 10_000, 100_000
MEMORY_SIZE = 50_000
CLOCK_SIZES = (SOME, MIDDLE, LARGE)

MS = 1e3
MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m checks.benchmarks", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="without the large sizes")
    options = parser.parse_args()
    sizes = [SMALL, SOME, MIDDLE, *([] if options.quick else [MEMORY_SIZE, LARGE])]
    table = Table(sizes)
    begin = time.monotonic()
    for size in sizes:
        with empty_folder() as folder:
            measure(table, size, folder)
        table.write("bench")  # A later size may fail.
    table.notes.append(f"took {time.monotonic() - begin:.0f} s")
    print(table.text(), *table.verdicts(), *table.notes, sep="\n")
    table.write("bench")


def measure(table: Table, peers: int, directory: Path) -> None:
    """Measure all rows of one size."""
    print(f"measuring with {peers:,} peers …", flush=True)
    with servers.upstream(peers, directory) as upstream:
        if peers != MEMORY_SIZE:
            refreshes(table, peers, upstream)
            starts(table, peers, upstream, directory)
            spent = starting.cpu_a_minute(upstream, directory)
            table.put("a minute: CPU, exporter", peers, spent, "s")
        if peers == MIDDLE:
            profiles.measure(table, peers, upstream, directory)
            often.measure(table, peers, directory)
            looking_up.measure(table, peers, upstream, directory)
        memories(table, peers, starting.memory_after(upstream, directory, rounds=3))
    if peers in CLOCK_SIZES:
        measure_clock(table, peers)


def memories(table: Table, peers: int, grown: starting.Memory) -> None:
    """Put the rows of memory: its peaks, and the bytes per peer and per series."""
    table.put("peak memory", peers, grown.peak, "MiB", {MEMORY_SIZE: 400e6 / MIB})
    table.put("peak address space", peers, grown.addresses, "MiB", {MEMORY_SIZE: 1024})
    table.put("resident memory", peers, grown.resident, "MiB")
    table.put("series of the network", peers, grown.series, "count")
    if peers > SMALL:
        floor = table.value("resident memory", SMALL)
        series = grown.series - table.value("series of the network", SMALL)
        above = (grown.resident - floor) * MIB
        name = "memory above 100 peers"
        table.put(f"{name}: a peer", peers, above / (peers - SMALL), "B", {MIDDLE: 5e3})
        table.put(f"{name}: a series", peers, above / series, "B", {MIDDLE: 600})


def refreshes(table: Table, peers: int, upstream: int) -> None:
    """Put the rows of a refresh: the page, processor time, stalls."""
    rounds = 2 if peers == LARGE else 7
    found = profiles.refreshed(upstream, rounds)
    full, unchanged = (statistics.median(found[kind]) for kind in ("full", "unchanged"))
    table.put("page: plain", peers, found["bytes"] / MIB, "MiB")
    table.put("refresh: CPU", peers, full * MS, "ms")
    each = full / found["series"]
    table.put("refresh: CPU per series", peers, each * 1e6, "µs", {MIDDLE: 6})
    share = {SMALL: 0.4, MIDDLE: 0.4, LARGE: 0.4}
    table.put("unchanged: share of a refresh", peers, unchanged / full, "ratio", share)
    stall = max(found["stalls"])
    table.put("longest stall", peers, stall * MS, "ms", {MIDDLE: 20, LARGE: 40})


def measure_clock(table: Table, peers: int) -> None:
    """Put the row of refreshes in which only `last_seen` of connected peers moves. The
    minimum counts, because the machine may be busy.
    """
    with servers.upstream_and_folder(peers, "clock") as upstream:
        found = profiles.refreshed(upstream, rounds=12)
    ratio = min(found["full"]) / min(found["unchanged"])
    name, targets = "last_seen moves, beside unchanged", dict.fromkeys(CLOCK_SIZES, 2.0)
    table.put(name, peers, ratio, "ratio", targets)


def starts(table: Table, peers: int, upstream: int, directory: Path) -> None:
    """Put the rows of a start, and of scrapes of the last started daemon."""
    times = 1 if peers == LARGE else 9
    healths: list[float] = []
    latencies: list[float] = []
    bare: list[float] = []
    warm_up(upstream, directory)
    for turn in range(times):
        bare.append(starting.start_web(directory))
        with servers.daemon(
            upstream, directory, REFRESH_INTERVALS=servers.ONCE
        ) as daemon:
            health, answers = starting.measure_start(daemon)
            healths.append(health)
            latencies += answers
            if turn == times - 1:
                scrapes(table, peers, daemon, directory)
                discoveries(table, peers, daemon)
    p99 = percentile(latencies, 0.99)
    table.put("/health in first refresh: p99", peers, p99 * MS, "ms", {MIDDLE: 100})
    if times > 1:
        ratio = statistics.median(healths) / statistics.median(bare)
        targets = {SMALL: 1.3, MIDDLE: 1.3}
        table.put("start beside twistd web", peers, ratio, "ratio", targets)


def warm_up(upstream: int, directory: Path) -> None:
    """Start both once, so that all is compiled and in the system's cache."""
    starting.start_web(directory)
    with servers.daemon(upstream, directory) as daemon:
        wait(daemon, "/health")


def scrapes(table: Table, peers: int, daemon: Program, directory: Path) -> None:
    """Put the rows of scrapes from the exporter and from bare servers."""
    times = 40 if peers == LARGE else 200
    found = scraping.compared(daemon, directory, times, library=peers <= MIDDLE)
    if "nginx" not in found:
        table.notes.append("no rows beside nginx: it is not installed")
    beside(table, peers, found)
    ours, wanted = found["exporter"], {MIDDLE: 3.0, LARGE: 3.0}
    if (nginx := found.get("nginx")) is not None:
        ratio = ours["plain"].median / nginx["plain"].median
        name = "scrape, plain: median beside nginx"
        table.put(name, peers, ratio, "ratio", {MIDDLE: 1.8, LARGE: 1.8})
        above = ours["gzip"].median - nginx["gzip"].median
        table.put("scrape, gzip: above nginx", peers, above * MS, "ms", wanted)
    above = ours["gzip"].cpu_each - found["site"]["gzip"].cpu_each
    table.put("scrape, gzip: CPU above writing", peers, above * MS, "ms", wanted)
    packed = len(Client(daemon.port).get("/metrics", *scraping.HEADERS["gzip"]))
    table.put("page: gzip", peers, packed / MIB, "MiB")


def beside(
    table: Table, peers: int, found: Mapping[str, Mapping[str, Scrapes]]
) -> None:
    """Put the rows in which all servers are compared."""
    for server, forms in found.items():
        gzip = forms["gzip"]
        table.put(f"scrape, gzip: median, {server}", peers, gzip.median * MS, "ms")
        table.put(f"memory: resident, {server}", peers, gzip.resident, "MiB")
        if server != "exporter":
            spent = gzip.cpu_each * scraping.PER_MINUTE
            table.put(f"a minute: CPU, {server}", peers, spent, "s")


def discoveries(table: Table, peers: int, daemon: Program) -> None:
    """Put the rows of service discovery: new lists of all peers, and the longest
    answer of `/health` meanwhile.
    """
    client, other = Client(daemon.port), Client(daemon.port)
    new, meanwhile = [], [0.0]
    with ThreadPoolExecutor(1) as pool:
        for number in range(1, (3 if peers == LARGE else 15) + 1):
            asked = pool.submit(client.time, f"/sd?port={number}")
            while not asked.done():
                meanwhile.append(other.time("/health")[0])
                time.sleep(0.002)
            new.append(asked.result()[0])
    client.close()
    other.close()
    median = statistics.median(new) * MS
    table.put("/sd, first answer: median", peers, median, "ms", {MIDDLE: 250})
    name = "/sd, longest /health meanwhile"
    table.put(name, peers, max(meanwhile) * MS, "ms", {MIDDLE: 30})


if __name__ == "__main__":
    main()

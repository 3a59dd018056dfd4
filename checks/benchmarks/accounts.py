"""Many accounts in one process: `python -m checks.benchmarks.accounts`.

Each account has its own token and the default intervals. Processor time is that of a
window as long as the longest interval, so that it includes every resource.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from checks.benchmarks.client import Client, wait
from checks.benchmarks.processes import Program, empty_folder, module, running, twistd
from checks.benchmarks.scraping import percentile
from checks.benchmarks.servers import MALLOC
from checks.benchmarks.table import Table
from tests.integration.exporter import key_and_certificate
from tests.integration.programs import free_port

SCRAPE = ("Accept: application/openmetrics-text;version=1.0.0", "Accept-Encoding: gzip")
SCRAPE_SECONDS = 30.0
"""Seconds between two scrapes of an account."""

MAX_WAIT = 300.0
"""Seconds until the first refresh of all resources must be complete."""

MIB = 1 << 20

_LAG = re.compile(rb'api_exporter_reactor_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')
_SUCCESS = re.compile(rb'last_success_timestamp_seconds\{resource="peers"\} (\S+)')


class Case(Struct, frozen=True, kw_only=True):
    """A number of accounts, their peers, and the targets.

    Attributes:
        targets: upper limits: share of a core, bytes, seconds of lag, seconds of age.
        big: peers of one additional account; 0 for none.
    """

    accounts: int
    peers: int
    tls: bool = False
    big: int = 0
    targets: Mapping[str, float]


TARGETS = {"core": 0.35, "memory": 650 * MIB, "lag": 0.05, "age": 45.0}
CASES = (
    Case(accounts=1000, peers=100, targets=TARGETS),
    Case(accounts=100, peers=100, tls=True, targets=TARGETS),
    Case(accounts=50, peers=2000, targets={"memory": 450 * MIB}),
    Case(accounts=20, peers=100, big=100_000, targets={"scrape": 0.1}),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m checks.benchmarks.accounts")
    parser.add_argument("--window", type=float, default=620.0, help="seconds")
    parser.add_argument("--only", type=int, help="the case with so many accounts")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in {None, case.accounts}]
    table = Table([case.accounts for case in cases], counted="accounts")
    for case in cases:
        with empty_folder() as folder:
            measure(table, case, folder, options.window)
    print(table.text(), *table.verdicts(), *table.notes, sep="\n")
    table.write("accounts")


def measure(table: Table, case: Case, directory: Path, window: float) -> None:
    print(f"measuring {case.accounts:,} accounts …", flush=True)
    names = [f"a{number}" for number in range(case.accounts)]
    with serving(case, directory, names) as program:
        everything = [*names, *(["big"] if case.big else [])]
        client = Client(program.port)
        begin = time.perf_counter()
        for name in everything:
            while not is_ready(client, name):
                program.check()
                if time.perf_counter() - begin > MAX_WAIT:
                    raise TimeoutError(f"the first round of {name} does not end")
                time.sleep(0.1)
        first, cpu, lag = time.perf_counter() - begin, program.cpu, lags(client)
        durations, max_age = watched(client, names, window)
        core = (program.cpu - cpu) / window
        size, targets = case.accounts, case.targets

        def put(name: str, value: float, unit: str, scale: float, of: str = "") -> None:
            wanted = {size: targets[of] * scale} if of in targets else None
            table.put(name, size, value * scale, unit, wanted)

        put("peers of each", case.peers, "count", 1)
        put("first round", first, "s", 1)
        put("processor", core, "% of a core", 100, "core")
        put("peak memory", program.memory("VmHWM") * MIB, "MiB", 1 / MIB, "memory")
        put("lag: p99 at most", quantile(lag, lags(client), 0.99), "ms", 1e3, "lag")
        put("oldest peers", max_age, "s", 1, "age")
        p99 = percentile(durations, 0.99)
        put("scrape of a small one: p99", p99, "ms", 1e3, "scrape")


@contextmanager
def serving(case: Case, directory: Path, names: list[str]) -> Iterator[Program]:
    """Run the daemon with its accounts."""
    upstream, port = free_port(), free_port()
    environ, settings = {"BIG": str(case.big)}, {}
    if case.tls:
        both, public = key_and_certificate(directory)
        environ["PEM"], settings["SSL_CERT_FILE"] = str(both), str(public)
    folder = directory / "accounts"
    folder.mkdir()
    for name in [*names, *(["big"] if case.big else [])]:
        (folder / f"{name}.conf").write_text(f"UPSTREAM_API_TOKEN=nbp_{name}\n")
    scheme = "https" if case.tls else "http"
    settings |= {
        "UPSTREAM_API_URL": f"{scheme}://localhost:{upstream}",
        "ACCOUNTS_DIR": str(folder),
        "LISTEN_ADDRESS": f"127.0.0.1:{port}",
        **MALLOC,
    }
    command = module("checks.benchmarks.customers", upstream, case.peers)
    with running(command, directory, environ, port=upstream) as program:
        if case.tls:
            time.sleep(5)
        else:
            wait(program, "/api/none", status=404)
        command = twistd("api-exporter")
        with running(command, directory, settings, port=port) as daemon:
            wait(daemon, "/health")
            yield daemon


def is_ready(client: Client, name: str) -> bool:
    """Return whether all resources of an account have been read."""
    page = client.get(f"/metrics?account={name}")
    return b'last_success_timestamp_seconds{resource="instance_version"}' in page


def watched(
    client: Client, names: list[str], window: float
) -> tuple[list[float], float]:
    """Scrape every account twice a minute at equal intervals. Return the seconds of
    each scrape, and the largest age of any account's peers.
    """
    durations, max_age, number = list[float](), 0.0, 0
    begin = time.perf_counter()
    while (now := time.perf_counter()) < begin + window:
        due = begin + number * SCRAPE_SECONDS / len(names)
        time.sleep(max(0.0, due - now))
        path = f"/metrics?account={names[number % len(names)]}"
        if number // len(names) % 4 == 3:  # one scrape in four reads the age
            success = _SUCCESS.search(client.get(path))
            assert success is not None
            max_age = max(max_age, time.time() - float(success[1]))
        else:
            durations.append(client.time(path, *SCRAPE)[0])
        number += 1
    return durations, max_age


Buckets = dict[float, float]


def lags(client: Client) -> Buckets:
    """Return the number of timers that were late by at most so many seconds."""
    found = _LAG.findall(client.get("/metrics"))
    return {float(le): float(count) for le, count in found}


def quantile(before: Buckets, after: Buckets, share: float) -> float:
    """Return the upper bound of the quantile's bucket."""
    grown = {le: after[le] - before[le] for le in after}
    most = max(grown.values())
    return min(le for le, count in sorted(grown.items()) if count >= share * most)


if __name__ == "__main__":
    main()

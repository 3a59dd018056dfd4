"""The daemon's first seconds: the time to its first response and to a complete page."""

import json
import time
from pathlib import Path

from msgspec import Struct

from checks.benchmarks import servers
from checks.benchmarks.client import Client, wait
from checks.benchmarks.processes import Program, running, twistd
from checks.benchmarks.scraping import HEADERS, PER_MINUTE
from tests.integration.programs import free_port

INTERVAL = 0.005
"""Seconds between two requests of `/health`."""

MAX_WAIT = 120.0
"""Seconds until the first refresh must be complete."""


class Memory(Struct, frozen=True):
    """The daemon's memory in mebibytes, and the number of the network's series."""

    peak: float
    addresses: float
    resident: float
    series: int


def start_web(directory: Path) -> float:
    """Return the seconds until the first response of `twistd web`."""
    port = free_port()
    (directory / "empty").mkdir(exist_ok=True)
    listen = ["--listen", f"tcp:{port}:interface=127.0.0.1"]
    command = twistd("web", *listen, "--path", "empty")
    with running(command, directory, port=port) as program:
        return wait(program, "/")


def measure_start(program: Program) -> tuple[float, list[float]]:
    """Measure a newly started daemon until everything has been read. Return the seconds
    to its first response, and those of each request of `/health` meanwhile.
    """
    begin = time.perf_counter()
    health = wait(program, "/health")
    client = Client(program.port)
    latencies: list[float] = []
    looked = 0.0
    while True:
        latencies.append(client.time("/health")[0])
        time.sleep(INTERVAL)
        now = time.perf_counter()
        if now - looked > 0.05:
            if everything_read(client):
                break
            looked = now
        if now - begin > MAX_WAIT:
            raise TimeoutError("the first round does not end")
    client.close()
    return health, latencies


def everything_read(client: Client, least: float = 1.0) -> bool:
    """Return whether every available resource has been read since an instant."""
    known = json.loads(client.get("/health"))["resources"].values()
    return all(
        (r["last_success_timestamp_seconds"] or 0.0) >= least
        for r in known
        if r["supported"] is not False
    )


def wait_for_all(program: Program, client: Client, since: float = 1.0) -> None:
    """Wait until every available resource has been read since an instant."""
    end = time.perf_counter() + MAX_WAIT
    while not everything_read(client, since):
        program.check()
        if time.perf_counter() > end:
            raise TimeoutError("not everything is read")
        time.sleep(0.1)


def cpu_a_minute(upstream_port: int, directory: Path) -> float:
    """Return processor seconds of a minute with default intervals and four scrapes."""
    with servers.daemon(upstream_port, directory) as program:
        wait(program, "/health")
        client = Client(program.port)
        wait_for_all(program, client)
        before = program.cpu
        for _ in range(PER_MINUTE):
            time.sleep(60 / PER_MINUTE)
            client.time("/metrics", *HEADERS["gzip"])
        client.close()
        return program.cpu - before


def memory_after(
    upstream_port: int, directory: Path, rounds: int, **settings: str
) -> Memory:
    """Return the memory after several refreshes with changes, and scrapes."""
    intervals = servers.ONCE.replace("24h", "2s")
    with servers.daemon(
        upstream_port, directory, REFRESH_INTERVALS=intervals, **settings
    ) as program:
        wait(program, "/health")
        client = Client(program.port)
        upstream = Client(upstream_port)
        for _ in range(rounds):
            since = time.time()
            wait_for_all(program, client, since)
            for encoding in ("identity", "gzip"):
                client.time("/metrics", f"Accept-Encoding: {encoding}")
            upstream.get("/tick")
        return Memory(
            peak=program.memory("VmHWM"),
            addresses=program.memory("VmPeak"),
            resident=program.memory("VmRSS"),
            series=client.get("/metrics").count(b"\nnetbird_api_"),
        )

"""The cost of a list of targets: new lists, other requests meanwhile, cached lists."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from checks.benchmarks.client import Client
from checks.benchmarks.processes import Program

INTERVAL = 0.002
"""Seconds between two requests of `/health`."""


class Discovery(Struct, frozen=True):
    """The result, in seconds.

    Attributes:
        new: the median time of a new list.
        cpu: processor time of a new list.
        meanwhile: the longest time of `/health` while new lists were rendered.
        cached: the median time of a cached list.
        length: bytes of a list.
    """

    new: float
    cpu: float
    meanwhile: float
    cached: float
    length: int


def measure(program: Program, times: int) -> Discovery:
    """Request lists of all peers with different ports, and `/health` all the time."""
    client, other = Client(program.port), Client(program.port)
    new, meanwhile = [], [0.0]
    before = program.cpu
    with ThreadPoolExecutor(1) as pool:
        for number in range(1, times + 1):
            asked = pool.submit(client.time, f"/sd?port={number}")
            while not asked.done():
                meanwhile.append(other.time("/health")[0])
                time.sleep(INTERVAL)
            new.append(asked.result()[0])
    cpu = (program.cpu - before) / times
    cached = [client.time(f"/sd?port={times}") for _ in range(times)]
    client.close()
    other.close()
    return Discovery(
        new=statistics.median(new),
        cpu=cpu,
        meanwhile=max(meanwhile),
        cached=statistics.median(seconds for seconds, _ in cached),
        length=cached[0][1],
    )

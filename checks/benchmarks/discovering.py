"""The cost of a new list of targets, and what other requests wait meanwhile."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from checks.benchmarks.client import Client
from checks.benchmarks.processes import Program

INTERVAL = 0.002
"""Seconds between two requests of `/health`."""


def measure(program: Program, times: int) -> tuple[float, float]:
    """Request lists of all peers with different ports, and `/health` all the time.
    Return the median seconds of a list and the longest of `/health`.
    """
    client, other = Client(program.port), Client(program.port)
    new, meanwhile = [], [0.0]
    with ThreadPoolExecutor(1) as pool:
        for number in range(1, times + 1):
            asked = pool.submit(client.time, f"/sd?port={number}")
            while not asked.done():
                meanwhile.append(other.time("/health")[0])
                time.sleep(INTERVAL)
            new.append(asked.result()[0])
    client.close()
    other.close()
    return statistics.median(new), max(meanwhile)

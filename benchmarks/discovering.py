"""What a list of targets costs: the first time, others meanwhile, and again."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from benchmarks.client import Client
from benchmarks.processes import Program

INTERVAL = 0.002
"""Seconds between two questions whether it is well."""


class Discovery(Struct, frozen=True):
    """Seconds, and the bytes of a list.

    Attributes:
        first: until a list is there that nobody has asked for before.
        cpu: the processor's for one of these.
        meanwhile: the longest wait for `/health` while such lists were made.
        again: until a list is there that was made before.
    """

    first: float
    cpu: float
    meanwhile: float
    again: float
    length: int


def watched(program: Program, port: int, times: int) -> Discovery:
    """Ask for all peers, each time at another port, and for `/health` all the time."""
    client, other = Client(port), Client(port)
    first, meanwhile = [], [0.0]
    before = program.cpu
    with ThreadPoolExecutor(1) as pool:
        for number in range(1, times + 1):
            asked = pool.submit(client.time, f"/sd?port={number}")
            while not asked.done():
                meanwhile.append(other.time("/health")[0])
                time.sleep(INTERVAL)
            first.append(asked.result()[0])
    cpu = (program.cpu - before) / times
    again = [client.time(f"/sd?port={times}") for _ in range(times)]
    client.close()
    other.close()
    return Discovery(
        first=statistics.median(first),
        cpu=cpu,
        meanwhile=max(meanwhile),
        again=statistics.median(seconds for seconds, _ in again),
        length=again[0][1],
    )

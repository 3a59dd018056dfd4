"""The cost of a scrape, compared with servers that only send the same bytes."""

import gzip
import math
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct, field

from checks.benchmarks import servers
from checks.benchmarks.client import Client
from checks.benchmarks.processes import Program

ACCEPT = (
    "Accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
"""The Accept header of Prometheus 3."""

HEADERS = {"plain": (ACCEPT,), "gzip": (ACCEPT, "Accept-Encoding: gzip")}


PER_MINUTE = 4
"""Scrapes a minute of a Prometheus server with an interval of 15 seconds."""

LIBRARY_SCRAPES = 5
"""Scrapes of the server that renders the page each time, which takes long."""


class Scrapes(Struct):
    """The scrapes of one form of the page from one server.

    Attributes:
        resident: resident mebibytes of the server after the last scrape.
    """

    resident: float = 0.0
    seconds: list[float] = field(default_factory=list)
    cpu: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def cpu_each(self) -> float:
        return self.cpu / len(self.seconds)


def percentile(values: list[float], share: float) -> float:
    """Return the value of the nearest rank; of few values, the largest."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def bodies(client: Client) -> dict[str, bytes]:
    """Return both forms of the page. Raise ValueError unless they have the same
    content. The page may still change after a refresh, so several attempts are made.
    """
    for _ in range(50):
        plain = client.get("/metrics", *HEADERS["plain"])
        packed = client.get("/metrics", *HEADERS["gzip"])
        if not (packed[:2] == b"\x1f\x8b" and plain.endswith(b"# EOF\n")):
            raise ValueError("not the forms that were asked for")
        ours = max(plain.find(b"\n# HELP python_"), 0)
        if gzip.decompress(packed)[:ours] == plain[:ours]:
            return {"plain": plain, "gzip": packed}
        time.sleep(0.1)
    raise ValueError("the two forms differ before our own metrics begin")


def compared(
    daemon: Program, directory: Path, times: int, *, library: bool
) -> dict[str, dict[str, Scrapes]]:
    """Return the scrapes by server and form, measured alternately.

    Args:
        library: whether `prometheus_client` is one of the servers.
    """
    pages = directory / "pages"
    pages.mkdir(exist_ok=True)
    client = Client(daemon.port)
    for form, body in bodies(client).items():
        (pages / form).write_bytes(body)
    with ExitStack() as stack:
        asked: dict[str, tuple[Program, Callable[[str], tuple[float, int]]]] = {
            "exporter": (daemon, lambda form: client.time("/metrics", *HEADERS[form]))
        }
        for name, start in (("site", servers.site), ("nginx", servers.nginx)):
            program = stack.enter_context(start(pages, directory))
            if program is not None:
                asked[name] = (program, _files(Client(program.port)))
        if library:
            program = stack.enter_context(servers.library(pages, directory))
            asked["library"] = (program, _closing(program.port))
        return _in_turns(asked, times)


def _files(client: Client) -> Callable[[str], tuple[float, int]]:
    return lambda form: client.time(f"/{form}")


def _closing(port: int) -> Callable[[str], tuple[float, int]]:
    """Return a function that requests a page on a new connection."""

    def ask(form: str) -> tuple[float, int]:
        client = Client(port)
        found = client.time("/metrics", *HEADERS[form])
        client.close()
        return found

    return ask


def _in_turns(
    asked: dict[str, tuple[Program, Callable[[str], tuple[float, int]]]], times: int
) -> dict[str, dict[str, Scrapes]]:
    found: dict[str, dict[str, Scrapes]] = {
        name: {form: Scrapes() for form in HEADERS} for name in asked
    }
    for turn in range(times + 2):
        for form in HEADERS:
            for name, (program, ask) in asked.items():
                if name == "library" and turn >= LIBRARY_SCRAPES + 2:
                    continue
                before = program.cpu
                seconds, _ = ask(form)
                time.sleep(0.001)  # the server's work after the last byte counts, too
                if turn >= 2:
                    scrapes = found[name][form]
                    scrapes.seconds.append(seconds)
                    scrapes.cpu += program.cpu - before
                    scrapes.resident = program.resident
    return found

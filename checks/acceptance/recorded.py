"""Hours of a scraped exporter in seconds: the whole program on a simulated machine.

Its samples become blocks of Prometheus' database, with the times of the simulation.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from api_exporter.demo.api import ACCESS_LOG_PATH, access_log_page
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.service import Configuration
from api_exporter.settings import environment
from api_exporter.subjects.table import RESOURCE_BY_NAME
from checks.acceptance.check import program, run
from simulation.company.network import SimulatedNetwork
from simulation.exporter import RunningExporter
from simulation.link import Response, complete
from simulation.machine import Machine

STEP = 60
"""Seconds between two scrapes."""

BLOCK = 7200
"""Seconds of a file: Prometheus' blocks have two hours."""

DATABASE = "tsdb"

_SERVICES = "/api/reverse-proxies/services"


class Exporter(Struct, frozen=True):
    """An exporter and the accounts that it reads.

    Attributes:
        networks: by token; a token without a network is refused.
        settings: the environment, without the address of the API.
        accounts: the names of accounts, if it has several.
        down: seconds before the end from which on it does not answer.
        change: changes the body of a path, as a company with other incidents.
    """

    networks: Mapping[str, SimulatedNetwork]
    settings: Mapping[str, str]
    accounts: tuple[str, ...] = ()
    instance: str = "api-exporter:8080"
    down: float = 0
    change: Callable[[str, bytes], bytes] = lambda _, body: body


class _Api:
    """The NetBird API of an exporter, at the time of its machine."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self.machine: Machine | None = None

    def connection_state(self) -> str:
        return "open"

    def respond(self, target: str, token: str) -> Response:
        path, _, query = f"/{target}".partition("?")
        network = self._exporter.networks.get(token)
        if network is None:
            return complete(401, b'{"message":"token invalid","code":401}')
        assert self.machine is not None
        now = self.machine.seconds()
        if path == ACCESS_LOG_PATH:
            services = json.loads(b"".join(network.body(_SERVICES, now) or ()))
            page = access_log_page(query, [one["id"] for one in services], now)
            return complete(200, page)
        body = network.body(f"/{target}", now)
        if body is None or path == f"/{RESOURCE_BY_NAME[CURRENT_USER].path}":
            return complete(403, b'{"message":"permission denied","code":403}')
        return complete(200, self._exporter.change(path, b"".join(body)))


def record(exporter: Exporter, begin: float, end: float, folder: Path) -> None:
    """Scrape an exporter from `begin` to `end`, in seconds since the epoch, into the
    database in a folder.
    """
    database = folder / DATABASE
    promtool = program("promtool")
    number = begin // BLOCK
    lines: list[str] = []
    for at, scraped in _scrapes(exporter, begin, end):
        if at // BLOCK != number:
            _store(promtool, lines, database, folder)
            number, lines = at // BLOCK, []
        lines += scraped
    _store(promtool, lines, database, folder)


def _store(promtool: Path, lines: list[str], database: Path, folder: Path) -> None:
    if lines:
        file = folder / "samples.om"
        file.write_text("\n".join([*lines, "# EOF\n"]))
        create = ("tsdb", "create-blocks-from", "openmetrics", file, database)
        run(promtool, *create)
        file.unlink()


def _scrapes(
    exporter: Exporter, begin: float, end: float
) -> Iterator[tuple[float, list[str]]]:
    """Yield the time and the samples of each scrape."""
    env = {
        "UPSTREAM_API_URL": "http://10.0.0.1",
        "UPSTREAM_PROXY": "none",
        "LISTEN_ADDRESS": "127.0.0.1:8080",
        "ACCESS_LOG_METRICS": "true",
        **exporter.settings,
    }

    read = partial(environment.read_settings, env)
    api = _Api(exporter)
    machine = api.machine = Machine(begin, api, lambda do: do(), lambda: 0.005)
    running = RunningExporter(
        machine,
        Configuration(read(), None, None),
        read=read,
        small_bytes=10**6,
        now=machine.seconds,
        jitter=lambda: 0.5,
    )
    running.start()
    targets = {"/metrics": {"job": "api-exporter"}}
    for name in exporter.accounts:
        targets[f"/metrics?account={name}"] = {"job": "netbird", "account": name}
    at = begin + STEP
    while at <= end:
        machine.run_until(at)
        answers = at <= end - exporter.down
        yield (
            at,
            [
                line
                for path, labels in targets.items()
                for line in _samples(
                    machine.get(path)[1] if answers else b"",
                    {**labels, "instance": exporter.instance},
                    at,
                )
            ],
        )
        at += STEP


def _samples(page: bytes, labels: Mapping[str, str], at: float) -> Iterator[str]:
    """Yield the lines of a page with the labels of its target, and `up`."""
    target = ",".join(f'{name}="{value}"' for name, value in labels.items())
    yield f"up{{{target}}} {int(bool(page))} {at}"
    for line in page.decode().splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name, bracket, own = series.removesuffix("}").partition("{")
            comma = "," if bracket and own else ""
            yield f"{name}{{{own}{comma}{target}}} {value} {at}"

"""The simulated API and the demo, each in a process of its own."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from checks.acceptance.check import listens, running, until
from tests.integration.programs import environment, free_port


@contextmanager
def upstream(folder: Path, peers: int, *pem: Path) -> Iterator[int]:
    """Run a simulated API, with TLS if there is a file for it. Yield its port."""
    port = free_port()
    arguments = ("checks.benchmarks.upstream", f"{port}", f"{peers}", *map(str, pem))
    with _listening(port, folder / "upstream.log", *arguments):
        yield port


@contextmanager
def demo(folder: Path, **settings: str) -> Iterator[int]:
    """Run a demo. Yield its port."""
    port = free_port()
    settings = {"DEMO_PEERS": "10", **settings}
    env = environment(LISTEN_ADDRESS=f"127.0.0.1:{port}", **settings)
    log = folder / "exporter.log"
    with _listening(port, log, "api_exporter", "--demo", env=env):
        yield port


@contextmanager
def _listening(
    port: int, log: Path, *module: str, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    with running(sys.executable, "-m", *module, log=log, env=env):
        until(lambda: listens(port), log.read_text)
        yield

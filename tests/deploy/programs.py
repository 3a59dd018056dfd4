"""The programs that the tests of `deploy/` start, and a running exporter."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.programs import (
    ROOT,
    environment,
    free_port,
    get,
    program,
    start,
    until,
)

DEPLOY = ROOT / "deploy"

LIMIT = 600
"""Seconds that a program may take."""


def run(
    *command: str | Path, status: int = 0, env: Mapping[str, str] | None = None
) -> str:
    """Return both output streams of a program after it has exited as expected."""
    done = subprocess.run(
        command,
        check=False,
        cwd="/",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    if done.returncode != status:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}")
    return done.stdout


@cache
def documents(path: Path) -> list[Any]:
    """Return all YAML documents of a file: a cached value, not to be changed. yq reads
    them, so that the tests need no YAML library.
    """
    # Without PYTHONPATH: yq is a program of the system's Python.
    text = run(program("yq"), "--slurp", ".", path, env=environment())
    found: list[Any] = json.loads(text)
    return found


def new_folder(test: SynchronousTestCase) -> Path:
    """Return a new folder, by its absolute path."""
    made = Path(test.mktemp()).absolute()
    made.mkdir(parents=True)
    return made


def blocks(page: str, language: str, heading: str = "") -> list[str]:
    """Return the code blocks of a document, or of a section, in a language."""
    text = (ROOT / "docs" / page).read_text()
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


class Exporter:
    """An exporter on a port of the loopback interface, until the test ends.

    Args:
        command: replaces the command of the demo.
    """

    def __init__(
        self, test: SynchronousTestCase, command: Sequence[str] = (), **settings: str
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        directory = new_folder(test)
        env = environment(LISTEN_ADDRESS=f"127.0.0.1:{self.port}", **settings)
        demo = [program("api-exporter"), "--demo"]
        self.running = start(test, command or demo, directory, env)
        until(lambda: self._complete() or self._ended(), "the first round")
        if self._ended():
            raise AssertionError(self.running.said())

    @property
    def page(self) -> str:
        """The metrics."""
        return get(f"{self.url}/metrics")[2].decode()

    @property
    def openmetrics(self) -> str:
        """The metrics as Prometheus requests them."""
        accept = "application/openmetrics-text"
        return get(f"{self.url}/metrics", Accept=accept)[2].decode()

    def _complete(self) -> bool:
        """Return whether every resource has been refreshed or has failed."""
        known = "api_exporter_refresh_duration_seconds{"
        planned = "api_exporter_resource_refresh_interval_seconds{"
        page = self.page
        return 0 < page.count(planned) == page.count(known)

    def _ended(self) -> bool:
        return self.running.process.poll() is not None

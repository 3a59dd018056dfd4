"""Real programs, started for a test and gone after it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest import SkipTest, TestCase

from api_exporter.settings.table import SETTINGS
from api_exporter.settings.way import VARIABLES

ROOT = Path(__file__).resolve().parents[2]

ALL_READ = 'api_exporter_resource_up{resource="instance_version"} 1.0'
"""A line of the metrics that is there once the first round is over."""

PATIENCE = 30.0
"""Seconds after which something that should have happened counts as not happening."""


def program(name: str) -> str:
    """The path of a program; the test is skipped where there is none."""
    found = shutil.which(
        name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    if found is None:
        raise SkipTest(f"missing program: {name}")
    return found


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**settings: str) -> dict[str, str]:
    """The environment without any of our settings, and without proxies; then these."""
    ours = {setting.name for setting in SETTINGS}
    ours |= {spelt for name in VARIABLES for spelt in (name, name.lower())}
    kept = {k: v for k, v in os.environ.items() if k not in ours}
    return {**kept, **settings}


class Running:
    """A process with its output in a file."""

    def __init__(
        self, command: Sequence[str], directory: Path, environ: Mapping[str, str]
    ) -> None:
        self.output = directory / "output"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        """All that it has written so far."""
        return self.output.read_text()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; the exit status and the seconds that it took to end."""
        begin = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        return status, time.monotonic() - begin

    def kill(self) -> None:
        """Whatever is left of it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def start(
    test: TestCase,
    command: Sequence[str],
    directory: Path,
    environ: Mapping[str, str] | None = None,
) -> Running:
    """Start a program that ends with the test at the latest."""
    running = Running(command, directory, environment() if environ is None else environ)
    test.addCleanup(running.kill)
    return running


def until(happened: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait, within reason, for something to happen."""
    end = time.monotonic() + patience
    while not happened():
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience:g} s: {what}")
        time.sleep(0.05)


def get(url: str, **headers: str) -> tuple[int, str, bytes]:
    """Status, content type and body of a page; (0, "", b"") where nobody answers."""
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read()
    except OSError:
        return 0, "", b""


def scraped(url: str, text: str) -> bool:
    """Whether a page can be read and holds a text."""
    status, _, body = get(url)
    return status == 200 and text in body.decode()

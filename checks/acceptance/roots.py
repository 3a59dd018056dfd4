"""Root file systems of Debian's releases, and programs that run in them.

The packages come from the mirror of the machine's own apt.
"""

import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

from msgspec import Struct

from checks.acceptance.check import (
    BUILD,
    ROOT,
    Failed,
    Missing,
    program,
    run,
    run_refused,
)

SUITES = {12: "bookworm", 13: "trixie"}
"""The supported releases of Debian."""

PYTHONS = {12: "3.11", 13: "3.13"}

_PACKAGES = "dbus,passwd,python3,systemd,systemd-sysv"

_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "HOME": "/root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PIP_FIND_LINKS": "/wheels",
    "PIP_NO_INDEX": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # For the system's own Python.
}

SOURCE = "/source"
"""The path of our tree in a root."""


class Root(Struct, frozen=True):
    """A directory that is the root of programs in it."""

    path: Path

    def run(self, *command: str) -> str:
        """Run a program in the root, without a service manager. Return its output."""
        return run(*self._inside(command))

    def refused(self, *command: str) -> str:
        """Return the output of a program that must fail."""
        return run_refused(*self._inside(command))

    def _inside(self, command: tuple[str, ...]) -> tuple[str, ...]:
        alone = ("--mount", "--pid", "--fork", "--kill-child")
        there = (f"--root={self.path}", "--wd=/", "--mount-proc")
        return ("unshare", *alone, *there, *clean(command))

    def apt(self, *arguments: str) -> None:
        self.run("apt-get", "--quiet", "update")
        self.run("apt-get", "--quiet", "--yes", *arguments)

    def files(self) -> set[str]:
        """Return all paths relative to the root."""
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}

    def read(self, name: str) -> str:
        return (self.path / name).read_text()


def clean(command: tuple[str, ...]) -> list[str]:
    """Return the command with a clean environment."""
    environment = (f"{name}={value}" for name, value in _ENVIRONMENT.items())
    return ["env", "-i", *environment, *command]


def make_root(folder: Path, release: int, *pythons: str) -> Root:
    """Return a new root with our tree, and wheels for the given Pythons."""
    root = make_bare(folder, release)
    run("git", "clone", "--quiet", ROOT, root.path / SOURCE.lstrip("/"))
    for python in pythons or (PYTHONS[release],):
        _wheels(root.path / "wheels", python)
    return root


def make_bare(folder: Path, release: int) -> Root:
    """Return a new root without our files, in which apt works."""
    try:
        run("unshare", "--mount", "--pid", "--fork", "true")
    except Failed:
        raise Missing("the privilege to make root file systems") from None
    root = Root(folder / f"debian-{release}")
    root.path.mkdir()
    run("tar", "--extract", "--file", archive(release), "--directory", root.path)
    (root.path / "etc/resolv.conf").unlink(missing_ok=True)
    (root.path / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    acquire = run("apt-config", "dump", "--format", '%F "%v";%n')
    (root.path / "etc/apt/apt.conf.d/99machine").write_text(
        "".join(f"{x}\n" for x in acquire.splitlines() if x.startswith("Acquire::"))
    )
    return root


def archive(release: int, name: str = "debian", packages: str = _PACKAGES) -> Path:
    """Return the archive of a root, which mmdebstrap builds once."""
    built = BUILD / f"{name}-{release}.tar"
    if not built.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        unfinished = built.with_suffix(".new.tar")
        options = ("--quiet", "--variant=minbase", f"--include={packages}")
        try:
            run(program("mmdebstrap"), *options, SUITES[release], unfinished, _mirror())
        except Failed as error:
            raise Missing(f"packages of Debian {release}: {error}") from None
        unfinished.rename(built)
    return built


def _mirror() -> str:
    """Return the mirror of this machine's Debian packages."""
    program("apt-get")
    lists = ("Created-By: Packages", "Label: Debian")
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", *lists)
    if not found:
        raise Missing("a list of Debian's packages: apt-get update")
    return found.split()[0]


def _wheels(folder: Path, python: str) -> None:
    """Download wheels to install our tree and `fast` without an index."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = requires("api-exporter") or ()
    ours = [x for x in wanted if "extra ==" not in x]
    fast = [x.partition(";")[0] for x in wanted if 'extra == "fast"' in x]
    version = python.replace(".", "")
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder),
        *("--only-binary=:all:", "--implementation=cp", f"--python-version={python}"),
        *(f"--abi=cp{version}", "--abi=abi3", "--abi=none"),
        *ours,
        *fast,
        *project["build-system"]["requires"],
    )

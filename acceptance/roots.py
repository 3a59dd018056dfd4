"""Root file systems of Debian's releases, and programs that run in them.

The packages come from where the machine's own apt has them.
"""

import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import requires
from pathlib import Path

from msgspec import Struct

from acceptance.check import BUILD, ROOT, Failed, Missing, program, run

SUITES = {12: "bookworm", 13: "trixie"}
"""Debian's releases on which we install."""

PYTHONS = {12: "3.11", 13: "3.13"}

_PACKAGES = "dbus,passwd,python3,systemd,systemd-sysv"

_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "HOME": "/root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PIP_FIND_LINKS": "/wheels",
    "PIP_NO_INDEX": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # of the system's own Python
}

SOURCE = "/source"
"""Where a root has our tree."""


class Root(Struct, frozen=True):
    """A directory that is the root of what runs in it."""

    path: Path

    def run(self, *command: str) -> str:
        """What a program prints that is run there, without a service manager."""
        alone = ("--mount", "--pid", "--fork", "--kill-child")
        there = (f"--root={self.path}", "--wd=/", "--mount-proc")
        return run("unshare", *alone, *there, *clean(command))

    def refused(self, *command: str) -> str:
        """What a program prints that must not succeed."""
        try:
            said = self.run(*command)
        except Failed as error:
            return str(error)
        raise Failed(f"{' '.join(command)}: succeeded\n{said}")

    def apt(self, *arguments: str) -> None:
        """Install or upgrade packages."""
        self.run("apt-get", "--quiet", "update")
        self.run("apt-get", "--quiet", "--yes", *arguments)

    def files(self) -> set[str]:
        """Every path of it."""
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}

    def read(self, name: str) -> str:
        """The text of one file."""
        return (self.path / name).read_text()


def clean(command: tuple[str, ...], env: Mapping[str, str] = _ENVIRONMENT) -> list[str]:
    """The command, with nothing of this machine's environment."""
    return ["env", "-i", *(f"{name}={value}" for name, value in env.items()), *command]


def made(folder: Path, release: int, *pythons: str) -> Root:
    """A fresh root with our tree, and what pip needs for the given Pythons in it."""
    root = bare(folder, release)
    run("git", "clone", "--quiet", ROOT, root.path / SOURCE.lstrip("/"))
    for python in pythons or (PYTHONS[release],):
        _wheels(root.path / "wheels", python)
    return root


def bare(folder: Path, release: int) -> Root:
    """A fresh root with nothing of ours in it, which reaches Debian's packages."""
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
    """The archive of a root as mmdebstrap makes it; made once."""
    made = BUILD / f"{name}-{release}.tar"
    if not made.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        unfinished = made.with_suffix(".new.tar")
        options = ("--quiet", "--variant=minbase", f"--include={packages}")
        try:
            run(program("mmdebstrap"), *options, SUITES[release], unfinished, _mirror())
        except Failed as error:
            raise Missing(f"packages of Debian {release}: {error}") from None
        unfinished.rename(made)
    return made


def _mirror() -> str:
    """Where this machine has Debian's packages from."""
    program("apt-get")
    lists = ("Created-By: Packages", "Label: Debian")
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", *lists)
    if not found:
        raise Missing("a list of Debian's packages: apt-get update")
    return found.split()[0]


def _wheels(folder: Path, python: str) -> None:
    """All that pip needs to install our tree and `fast`, so that it needs no index."""
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

"""Upgrade of Debian below an installation, without a service manager."""

import re
import shlex
from pathlib import Path

from checks.acceptance.check import ROOT, expect
from checks.acceptance.roots import PYTHONS, SOURCE, SUITES, Root, make_root

INSTALL, UNINSTALL = f"{SOURCE}/deploy/install.sh", f"{SOURCE}/deploy/uninstall.sh"


def check_upgrade(folder: Path) -> str:
    """Check that a 0.1 installation runs again after an upgrade of Debian."""
    old, new = SUITES
    root = make_root(folder, old, *PYTHONS.values())
    root.apt("install", "python3-venv")
    root.run("python3", "-m", "venv", "/opt/api-exporter")
    root.run("/opt/api-exporter/bin/pip", "install", "--quiet", SOURCE)
    first = _version(root)
    sources = root.path / "etc/apt/sources.list"
    sources.write_text(sources.read_text().replace(SUITES[old], SUITES[new]))
    root.apt("dist-upgrade")
    unit = ROOT / "deploy/systemd/api-exporter.service"
    [before] = re.findall(r"^ExecStartPre=(.*)$", unit.read_text(), re.MULTILINE)
    broken = root.refused(*shlex.split(before))
    expect("what to do is said", True, "run deploy/install.sh again" in broken)
    second = _install(root, PYTHONS[new])
    root.run(UNINSTALL, "--purge")
    expect("what is left", [], [x.name for x in (root.path / "opt").iterdir()])
    return "\n".join(
        (
            f"Debian {old}: {first}",
            f"Debian {new}, before: {broken.splitlines()[-1]}",
            f"Debian {new}, installed again: {second}",
        )
    )


def _install(root: Root, python: str) -> str:
    """Install with a version of Python. Return the installed version."""
    root.run(INSTALL)
    [libraries] = (root.path / "opt").glob("api-exporter.env-*/lib/*")
    expect("Python", f"python{python}", libraries.name)
    return _version(root)


def _version(root: Root) -> str:
    return root.run("/opt/api-exporter/bin/twistd", "api-exporter", "--version").strip()

"""Install, upgrade and remove on Debian without a service manager."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from acceptance.check import ROOT, Failed, expect
from acceptance.roots import PYTHONS, SOURCE, SUITES, Root, make_root

INSTALL, UNINSTALL = f"{SOURCE}/deploy/install.sh", f"{SOURCE}/deploy/uninstall.sh"

ACCOUNTS = ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow")


def check_install(release: int) -> Callable[[Path], str]:
    """Return the check for one release of Debian."""

    def check(folder: Path) -> str:
        """Check both scripts. Without python3-venv, the script prints one line. A
        damaged environment is replaced. A failed upgrade changes nothing. --purge
        leaves no file.
        """
        root = make_root(folder, release)
        seen = [_check_refusal(root)]
        root.run("sh", "-c", "! python3 -m venv /opt/api-exporter")  # as in 0.1
        root.apt("install", "python3-venv")
        before, accounts = root.files(), [root.read(name) for name in ACCOUNTS]
        version = _install(root, PYTHONS[release])
        seen.append(f"over half an environment: {version}")
        config = root.path / "etc/api-exporter/config"
        config.write_text("UPSTREAM_API_URL=https://kept.example\n")
        root.refused(INSTALL, "--source", "/none.whl")
        expect("a failed upgrade", version, _version(root))
        _install(root, PYTHONS[release])
        expect("the settings", True, "kept.example" in config.read_text())
        seen.append("a failed upgrade leaves what ran, another keeps the settings")
        root.run("systemctl", "enable", "api-exporter.service")
        root.run(UNINSTALL)
        expect("the settings", True, config.exists())
        root.run(UNINSTALL, "--purge")
        expect("accounts", accounts, [root.read(name) for name in ACCOUNTS])
        left = sorted(x for x in root.files() - before if not _is_foreign(x))
        expect("what is left", [], left)
        seen.append("removed: no file more than before, no user")
        return "\n".join(seen)

    return check


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


def _check_refusal(root: Root) -> str:
    """Check that the script refuses to run without python3-venv and changes nothing."""
    before = root.files()
    said = root.refused(INSTALL).splitlines()[1:]
    if len(said) != 1 or "apt-get install python3-venv" not in said[0]:
        raise Failed("\n".join(said))
    expect("what a refusal leaves", [], sorted(root.files() - before))
    return said[0]


def _install(root: Root, python: str) -> str:
    """Install with a version of Python. Return the installed version."""
    root.run(INSTALL)
    [environment] = (root.path / "opt").glob("api-exporter.env-*")
    expect("Python", python, re.findall(r"python(3\.\d+)$", _libraries(environment))[0])
    return _version(root)


def _libraries(environment: Path) -> str:
    [libraries] = (environment / "lib").iterdir()
    return str(libraries)


def _version(root: Root) -> str:
    return root.run("/opt/api-exporter/bin/twistd", "api-exporter", "--version").strip()


def _is_foreign(path: str) -> bool:
    """Return whether other programs leave a path, such as a backup of accounts."""
    return path in {f"{name}-" for name in ACCOUNTS} | {"etc/sysusers.d"}

"""The Debian package: looked at, installed, run, upgraded, removed and purged."""

import shutil
from collections.abc import Callable
from pathlib import Path

from acceptance.boots import System, booted
from acceptance.check import Failed, program, run
from acceptance.installing import same
from acceptance.pages import script
from acceptance.released import commit, products
from acceptance.roots import Root, bare
from acceptance.service import (
    HERE,
    READ,
    hardened,
    logged,
    main_process,
    shown,
    simulated,
)
from api_exporter.demo.server import TOKEN

_BEFORE = "0.0.1"
"""A version before any other."""

_TOOLS = {
    "sudo": 'exec "$@"\n',
    "sudoedit": 'cat /settings >"$1"\n',
}
"""What the page's commands go through, without a person."""

UNIT = "api-exporter.service"


def lintian(_folder: Path) -> str:
    """It has nothing to say but what the overrides explain."""
    [package] = (products() / "dist/release").glob("*.deb")
    fails = ("--fail-on", "error,warning", "--allow-root")
    said = run(program("lintian"), *fails, package).strip()
    return f"{package.name}: {said or 'nothing'}"


def packaged(release: int) -> Callable[[Path], str]:
    """The check of the package on one release."""

    def check(folder: Path) -> str:
        """The page's commands bring it to run, hardened; an upgrade from the version
        before restarts it and keeps the settings, the next boot brings it back,
        removing leaves the settings, purging nothing.
        """
        tree = products()
        root = bare(folder, release)
        root.apt("install", "--no-install-recommends", "ca-certificates", "curl")
        place = root.path / "packages"
        [package] = (tree / "dist/release").glob("*.deb")
        _old(tree, place)
        for name, text in _TOOLS.items():
            tool = root.path / "usr/local/bin" / name
            tool.write_text(f"#!/bin/sh\n{text}")
            tool.chmod(0o755)
        run("dpkg-deb", "--extract", package, root.path / "opt/upstream")
        before = _ours(root)
        seen = []
        with booted(root) as system:

            def follow(heading: str = "") -> str:
                page = f"cd /packages\n{script('debian.md', heading)}"
                return system.run("sh", "-c", page)

            api = simulated(system, "/opt/upstream/usr/bin/api-exporter")
            settings = f"UPSTREAM_API_URL={api}\nUPSTREAM_API_TOKEN={TOKEN}\n"
            (root.path / "settings").write_text(settings)
            seen.append(_installed(system))
            follow()
            system.until_got(READ, HERE, "/metrics")
            seen.append(f"by the page: {hardened(system)}")
            shutil.copy(package, place)
            (place / f"{_name(package, _BEFORE)}").unlink()
            seen.append(_upgraded(system, follow, commit(tree)))
            same("settings", settings, root.read("etc/api-exporter/config"))
            (root.path / "settings").write_text(f"UPSTREAM_API_URL={api}\n")
            system.run("sudoedit", "/etc/api-exporter/config")
            _credential(system, follow)
            seen.append("the token as a credential")
            address = "LISTEN_ADDRESS=systemd:domain=INET6:index=0\n"
            with (root.path / "etc/api-exporter/config").open("a") as file:
                file.write(address)
            system.run("systemctl", "stop", UNIT)
            system.run("systemctl", "enable", "--now", "api-exporter.socket")
            system.run("systemctl", "start", UNIT)
            system.until_got(READ, "[::1]:8080", "/metrics")
            seen.append(f"socket: {logged(system, ' is at ')[-1]}")
            same("what went wrong", [], logged(system, "Traceback"))
        with booted(root) as system:
            system.until_got('"ok"', HERE, "/health")
            seen.append("it is back after the next boot")
            main = main_process(system)
            system.run("sh", "-c", script("debian.md", "Remove"))
            same("the unit", "not-found", shown(system, "LoadState"))
            same(
                "its process", "", system.run("sh", "-c", f"ls -d /proc/{main} 2>&-; :")
            )
            if "systemd:domain" not in root.read("etc/api-exporter/config"):
                raise Failed("removing has taken the settings")
            system.run("apt-get", "--yes", "purge", "api-exporter")
            state = system.run("systemctl", "is-system-running").strip()
            same("the system", "running", state)
        system_dropin = {
            "etc/systemd/system/api-exporter.service.d",
            "etc/systemd/system/api-exporter.service.d/token.conf",
        }
        same("what is left", set(), _ours(root) - before - system_dropin)
        seen.append("removed: the settings stay; purged: nothing but the user")
        return "\n".join(seen)

    return check


def _old(tree: Path, place: Path) -> None:
    """The package of the version before, which is the same program."""
    build = tree / "deploy/debian/build.sh"
    directory = tree / "build/directory/api-exporter"
    run(build, directory, _BEFORE, place, env={"COMPRESSION": "none"})


def _name(package: Path, version: str) -> str:
    name, _, architecture = package.name.split("_")
    return f"{name}_{version}-1_{architecture}"


def _installed(system: System) -> str:
    """What installing does: no service yet, and settings that are not for everybody."""
    system.run("sh", "-c", "cd /packages && apt-get --yes install ./*.deb")
    modes = system.run(
        "stat", "-c", "%a %U:%G %n", "/etc/api-exporter", "/etc/api-exporter/config"
    )
    same(
        "modes",
        "750 root:api-exporter /etc/api-exporter\n640 root:api-exporter /etc/api-exporter/config\n",
        modes,
    )
    same("the service", "inactive", shown(system, "ActiveState"))
    same("the service", "disabled", shown(system, "UnitFileState"))
    same("the system", "running", system.run("systemctl", "is-system-running").strip())
    said = system.run(
        "sh", "-c", "api-exporter --check --config /etc/api-exporter/config 2>&1; :"
    )
    if "UPSTREAM_API_URL is not set" not in said:
        raise Failed(said)
    system.run("apt-get", "--yes", "purge", "api-exporter")
    return "installed: not started, and --check says what is not set"


def _upgraded(system: System, follow: Callable[[str], str], ours: str) -> str:
    """It is upgraded while it runs."""
    before = main_process(system)
    follow("Upgrade")
    system.until_got(READ, HERE, "/metrics")
    if main_process(system) == before:
        raise Failed("it has not been restarted")
    said = system.run("api-exporter", "--version").strip()
    if ours not in said:
        raise Failed(said)
    version = system.run("dpkg-query", "--show", "api-exporter").split()[1]
    return f"upgraded while it runs, from {_BEFORE}-1 to {version}: {said}"


def _credential(system: System, follow: Callable[[str], str]) -> None:
    """The token as the page has it, in place of a line of the settings."""
    page = script("debian.md", "The token as a credential")
    first, *others = page.splitlines()[1:]
    system.run("sh", "-ec", f"echo {TOKEN} | {first}\n" + "\n".join(others))
    system.until_got(READ, HERE, "/metrics")


def _ours(root: Root) -> set[str]:
    """Every path that has our name, but for what the check itself has put there."""
    own = ("packages", "opt/upstream", "run/", "var/log/journal")
    names = ("api-exporter", "api_exporter")
    return {
        path
        for path in root.files()
        if any(name in path for name in names) and not path.startswith(own)
    }

"""The Debian package: checked, installed, run, upgraded, removed and purged."""

from collections.abc import Callable, Iterator
from pathlib import Path

from api_exporter.demo.server import DEMO_TOKEN
from checks.acceptance.boots import System, booted
from checks.acceptance.check import Failed, expect, program, run
from checks.acceptance.package_upgrade import CONFIG, exchange, follow, old_package
from checks.acceptance.pages import credential, script, stub
from checks.acceptance.released import commit, products
from checks.acceptance.roots import Root, make_bare
from checks.acceptance.service import (
    ADDRESS,
    READ,
    UNIT,
    exposure,
    log_lines,
    main_process,
    start_api,
    unit_property,
)

_CREATED = {
    "etc/systemd/system/api-exporter.service.d",
    "etc/systemd/system/api-exporter.service.d/token.conf",
}
"""Files that the page's commands create."""


def lintian(_folder: Path) -> str:
    """Check that lintian has no finding without an override."""
    [package] = (products() / "dist/release").glob("*.deb")
    fails = ("--fail-on", "error,warning", "--allow-root")
    said = run(program("lintian"), *fails, package).strip()
    return f"{package.name}: {said or 'nothing'}"


def packaged(release: int) -> Callable[[Path], str]:
    """Return the check of the package on one release of Debian."""

    def check(folder: Path) -> str:
        """Check the package with the page's commands. It runs hardened. An upgrade
        from 0.2.0 and the way back restart it and keep the settings. It runs after a
        reboot. Removing keeps the settings, purging removes them.
        """
        tree = products()
        root = make_bare(folder, release)
        root.apt("install", "--no-install-recommends", "ca-certificates", "curl")
        stub(root.path / "usr/local/bin")
        yes = 'APT::Get::Assume-Yes "true";\n'  # the answer of a person
        (root.path / "etc/apt/apt.conf.d/99yes").write_text(yes)
        old = old_package(folder)
        [package] = (tree / "dist/release").glob("*.deb")
        run("dpkg-deb", "--extract", package, root.path / "opt/upstream")
        before = _own_paths(root)
        with booted(root) as system:
            seen = [
                _check_installation(system, root, package),
                *_check_running(system, root, old, package),
            ]
            said = system.run("api-exporter", "--version").strip()
            expect("its commit", True, commit(tree) in said)
            seen.append(said)
        with booted(root) as system:
            system.get_until('"ok"', ADDRESS, "/health")
            seen.append("it is back after the next boot")
            seen.append(_remove(system, root))
        expect("what is left", set(), _own_paths(root) - before - _CREATED)
        return "\n".join(seen)

    return check


def _check_running(
    system: System, root: Root, old: Path, package: Path
) -> Iterator[str]:
    """Install 0.2.0 by the page, upgrade, and listen on systemd's socket."""
    api = start_api(system, "/opt/upstream/usr/bin/api-exporter")
    settings = f"UPSTREAM_API_URL={api}\nUPSTREAM_API_TOKEN={DEMO_TOKEN}\n"
    (root.path / "settings").write_text(settings)
    follow(system, root, old)
    system.get_until(READ, ADDRESS, "/metrics")
    yield exchange(system, root, package, "Upgrade")
    yield exchange(system, root, old, "Go back")
    yield exchange(system, root, package, "Upgrade")
    expect("settings", settings, root.read(CONFIG[1:]))
    yield exposure(system)
    address = "LISTEN_ADDRESS=systemd:domain=INET6:index=0"
    (root.path / "settings").write_text(f"UPSTREAM_API_URL={api}\n{address}\n")
    system.run("sudoedit", CONFIG)
    system.run("systemctl", "stop", UNIT)
    system.run("systemctl", "enable", "--now", "api-exporter.socket")
    _set_credential(system)
    system.get_until(READ, "[::1]:8080", "/metrics")
    yield f"the token as a credential, and {log_lines(system, ' is at ')[-1]}"
    yield exchange(system, root, old, "Go back")
    yield exchange(system, root, package, "Upgrade")
    expect("what went wrong", [], log_lines(system, "Traceback"))


def _check_installation(system: System, root: Root, package: Path) -> str:
    """Check that the package starts no service and restricts access to the settings."""
    follow(system, root, package, "Upgrade")
    for mode, path in (("750", "/etc/api-exporter"), ("640", CONFIG)):
        found = system.run("stat", "-c", "%a %U:%G", path).strip()
        expect(path, f"{mode} root:api-exporter", found)
    expect("the service", "inactive", unit_property(system, "ActiveState"))
    expect("the service", "disabled", unit_property(system, "UnitFileState"))
    expect(
        "the system", "running", system.run("systemctl", "is-system-running").strip()
    )
    said = system.run(
        "sh", "-c", "api-exporter --check --config /etc/api-exporter/config 2>&1; :"
    )
    if "UPSTREAM_API_URL is not set" not in said:
        raise Failed(said)
    system.run("apt-get", "purge", "api-exporter")
    return "installed: not started, and --check says what is not set"


def _set_credential(system: System) -> None:
    """Replace the token in the settings by a credential, as on the page."""
    system.run("sh", "-c", credential("debian.md", DEMO_TOKEN))
    system.get_until(READ, ADDRESS, "/metrics")


def _remove(system: System, root: Root) -> str:
    """Remove the package, then purge it."""
    main = main_process(system)
    system.run("sh", "-c", script("debian.md", "Remove"))
    expect("the unit", "not-found", unit_property(system, "LoadState"))
    expect("its process", "", system.run("sh", "-c", f"ls -d /proc/{main} 2>&-; :"))
    if "systemd:domain" not in root.read(CONFIG[1:]):
        raise Failed("removing has taken the settings")
    system.run("apt-get", "purge", "api-exporter")
    state = system.run("systemctl", "is-system-running").strip()
    expect("the system", "running", state)
    return "removed: the settings stay; purged: nothing but the user"


def _own_paths(root: Root) -> set[str]:
    """Return all paths with the package's name, except files of the check itself."""
    own = ("packages", "opt/upstream", "run/", "var/log/journal")
    names = ("api-exporter", "api_exporter")
    return {
        path
        for path in root.files()
        if any(name in path for name in names) and not path.startswith(own)
    }

"""The package of 0.2.0, upgraded while it is scraped, and the way back."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checks.acceptance.boots import System
from checks.acceptance.check import BUILD, ROOT, Failed, expect, run
from checks.acceptance.pages import script
from checks.acceptance.released import SYSTEM_PYTHON
from checks.acceptance.roots import Root
from checks.acceptance.service import ADDRESS, READ, main_process, unit_property

CONFIG = "/etc/api-exporter/config"

_OLD_COMMIT = "b457664"

_OLD_VERSION = "0.2.0.dev0"
"""A version older than 0.2.0 and all later ones, so that dpkg sees an upgrade."""

_SCRAPER = f"""
import http.client, json, os, time
last = time.monotonic()
longest = slowest = refused = 0
while True:
    begin = time.monotonic()
    try:
        asked = http.client.HTTPConnection("{ADDRESS}", timeout=10)
        asked.request("GET", "/metrics")
        read = b"{READ}" in asked.getresponse().read()
        now = time.monotonic()
        slowest = max(slowest, now - begin)
        if read:
            longest, last = max(longest, now - last), now
    except OSError:
        refused += 1
    with open("/run/scrapes.new", "w") as file:
        json.dump([refused, longest, slowest], file)
    os.rename("/run/scrapes.new", "/run/scrapes")
    time.sleep(max(0, begin + 0.1 - time.monotonic()))
"""
"""A program that scrapes ten times a second. It writes how many scrapes were refused,
and in seconds the longest time without samples of NetBird and the slowest answer.
"""


def old_package(folder: Path) -> Path:
    """Return the package of 0.2.0, made in a folder of its program, built once."""
    tree = BUILD / _OLD_COMMIT
    if not (tree / "dist").exists():
        shutil.rmtree(tree, ignore_errors=True)
        run("git", "clone", "--quiet", ROOT, tree)
        run("git", "checkout", "--quiet", _OLD_COMMIT, cwd=tree)
        run("make", "directory", f"PYTHON={SYSTEM_PYTHON}", cwd=tree)
    build = tree / "deploy/debian/build.sh"
    directory = tree / "build/directory/api-exporter"
    run(build, directory, _OLD_VERSION, folder, env={"COMPRESSION": "none"})
    [package] = folder.glob("*.deb")
    return package


def exchange(system: System, root: Root, package: Path, heading: str) -> str:
    """Install another version of the running package by the page, while it is scraped.
    Nothing prompts, the service restarts, and the settings stay.
    """
    before, process = _settings(system), main_process(system)
    with _scraped(system) as gaps:
        follow(system, root, package, heading)
        system.get_until(READ, ADDRESS, "/metrics")
    if main_process(system) == process:
        raise Failed(f"{heading}: the service has not been restarted")
    expect(f"{heading}: settings", before, _settings(system))
    expect(f"{heading}: what dpkg finds", "", system.run("dpkg", "--audit"))
    expect("the service", "active", unit_property(system, "ActiveState"))
    version = system.run("dpkg-query", "--show", "api-exporter").split()[1]
    return f"{heading}, to {version}, unattended: {', '.join(gaps)}"


def follow(system: System, root: Root, package: Path, heading: str = "") -> str:
    """Return the output of the page's commands, run beside a package."""
    folder = root.path / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(package, folder)
    return system.run("sh", "-c", f"cd /packages\n{script('debian.md', heading)}")


def _settings(system: System) -> str:
    return system.run("sh", "-c", f"stat -c '%a %U:%G' {CONFIG}; cat {CONFIG}")


@contextmanager
def _scraped(system: System) -> Iterator[list[str]]:
    """Scrape until the end of the block. Return a list, which then has the gaps."""
    gaps: list[str] = []
    unit = ("--quiet", "--collect", "--unit=scraper")
    system.run("systemd-run", *unit, "python3", "-c", _SCRAPER)
    system.wait_until("[", "cat", "/run/scrapes")
    yield gaps
    system.run("sleep", "1")
    refused, longest, slowest = json.loads(system.run("cat", "/run/scrapes"))
    system.run("systemctl", "stop", "scraper")
    system.run("rm", "/run/scrapes")
    gaps += [
        f"{refused} scrapes refused",
        f"{longest:.1f} s without samples",
        f"slowest answer {slowest:.1f} s",
    ]

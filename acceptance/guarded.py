"""The booted unit behind TLS and authentication, scraped by a real Prometheus."""

from collections.abc import Callable, Mapping
from pathlib import Path

from acceptance.boots import System
from acceptance.check import program
from acceptance.installing import same
from acceptance.roots import SOURCE
from acceptance.scraping import (
    ASKED,
    CERTIFICATES,
    CERTIFIED,
    KNOWN,
    Prometheus,
    keys,
)
from tests.access.certificates import Authority

HERE = "127.0.0.1:8080"

FILES = ("web.yml", "tokens", "server.pem", "server.key", "clients.pem")

Restart = Callable[[Mapping[str, str]], None]

_SHOWN = """
import ssl
print(ssl.get_server_certificate(("127.0.0.1", 8080)))
"""
_OTHER = """
import ssl, sys
shown = ssl.get_server_certificate(("127.0.0.1", 8080))
sys.exit("the same" if shown.strip() == sys.argv[1].strip() else print(shown))
"""


def guarded(system: System, etc: Path, folder: Path, restart: Restart) -> list[str]:
    """Check authentication, the health script and a new certificate. Only a password,
    token or client certificate gives access. The health script needs none of them. A
    new certificate needs no restart.

    Args:
        etc: the path of the unit's configuration on this machine.
        folder: a new folder for Prometheus.
        restart: restarts the unit with additional settings.
    """
    folder.mkdir()
    authority = Authority()
    keys(authority, etc, folder)
    there = (program("nsenter"), f"--target={system.leader}", "--net")
    prometheus = Prometheus(folder, HERE, "127.0.0.1:9099", system.get, there)
    (etc / "web.yml").write_text(ASKED)
    _readable(system)
    doors = {
        "WEB_CONFIG_FILE": "/etc/api-exporter/web.yml",
        "WEB_BEARER_TOKENS_FILE": "/etc/api-exporter/tokens",
    }
    restart(doors)
    seen = [prometheus.let_in(KNOWN), _healthy(system)]
    seen.append(_rotated(system, authority, etc))
    (etc / "web.yml").write_text(CERTIFIED)
    restart({"WEB_CONFIG_FILE": doors["WEB_CONFIG_FILE"]})
    seen += [prometheus.let_in(CERTIFICATES), _healthy(system)]
    for name in FILES:
        (etc / name).unlink()
    return seen


def _readable(system: System) -> None:
    """Make the files readable for the unit's group only."""
    files = " ".join(FILES)
    command = f"cd /etc/api-exporter; chgrp api-exporter {files}; chmod 640 {files}"
    system.run("sh", "-c", command)


def _healthy(system: System) -> str:
    """Return the output of the script for monitoring systems, which must succeed."""
    said = system.run(f"{SOURCE}/deploy/check-health.sh").strip()
    return f"the script: {said}"


def _rotated(system: System, authority: Authority, etc: Path) -> str:
    """Check that a new certificate is served without a restart."""
    before = system.run("python3", "-c", _SHOWN)
    authority.server().write(etc, "server")
    _readable(system)
    after = system.until("CERTIFICATE", "python3", "-c", _OTHER, before)
    same("a certificate", True, before != after)
    return "a new certificate is shown without a restart"

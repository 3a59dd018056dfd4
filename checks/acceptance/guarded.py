"""The booted unit behind TLS and authentication, scraped by a real Prometheus."""

from collections.abc import Callable, Mapping
from pathlib import Path

from checks.acceptance.boots import System
from checks.acceptance.check import expect, program
from checks.acceptance.roots import SOURCE
from checks.acceptance.scraping import (
    CERTIFICATE_JOBS,
    CERTIFICATE_WEB,
    PASSWORD_JOBS,
    PASSWORD_WEB,
    Prometheus,
    write_keys,
)
from tests.authority import Authority

ADDRESS = "127.0.0.1:8080"

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


def check_access(
    system: System, etc: Path, folder: Path, restart: Restart
) -> list[str]:
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
    write_keys(authority, etc, folder)
    there = (program("nsenter"), f"--target={system.leader}", "--net")
    prometheus = Prometheus(folder, ADDRESS, "127.0.0.1:9099", system.get, there)
    (etc / "web.yml").write_text(PASSWORD_WEB)
    _restrict(system)
    access = {
        "WEB_CONFIG_FILE": "/etc/api-exporter/web.yml",
        "WEB_BEARER_TOKENS_FILE": "/etc/api-exporter/tokens",
    }
    restart(access)
    seen = [prometheus.check_access(PASSWORD_JOBS), _check_health(system)]
    seen.append(_check_renewal(system, authority, etc))
    (etc / "web.yml").write_text(CERTIFICATE_WEB)
    restart({"WEB_CONFIG_FILE": access["WEB_CONFIG_FILE"]})
    seen += [prometheus.check_access(CERTIFICATE_JOBS), _check_health(system)]
    for name in FILES:
        (etc / name).unlink()
    return seen


def _restrict(system: System) -> None:
    """Make the files readable for the unit's group only."""
    files = " ".join(FILES)
    command = f"cd /etc/api-exporter; chgrp api-exporter {files}; chmod 640 {files}"
    system.run("sh", "-c", command)


def _check_health(system: System) -> str:
    """Return the output of the script for monitoring systems, which must succeed."""
    said = system.run(f"{SOURCE}/deploy/check-health.sh").strip()
    return f"the script: {said}"


def _check_renewal(system: System, authority: Authority, etc: Path) -> str:
    """Check that a new certificate is served without a restart."""
    before = system.run("python3", "-c", _SHOWN)
    authority.server().write(etc, "server")
    _restrict(system)
    after = system.wait_until("CERTIFICATE", "python3", "-c", _OTHER, before)
    expect("a certificate", True, before != after)
    return "a new certificate is shown without a restart"

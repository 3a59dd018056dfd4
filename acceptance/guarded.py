"""The booted unit behind a front door, and a real Prometheus before it."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import bcrypt

from acceptance.boots import System
from acceptance.check import program
from acceptance.installing import same
from acceptance.roots import SOURCE
from tests.door.certificates import Authority

PROMETHEUS = "127.0.0.1:9099"
"""Where it listens, in the network of the booted system."""

PASSWORD, TOKEN = "a password of many words", "a-token-of-some-length"

PATIENCE = 60.0
"""Seconds in which each job is scraped three times."""

_SHOWN = """
import ssl
print(ssl.get_server_certificate(("127.0.0.1", 8080)))
"""
_OTHER = """
import ssl, sys
shown = ssl.get_server_certificate(("127.0.0.1", 8080))
sys.exit("the same" if shown.strip() == sys.argv[1].strip() else print(shown))
"""

Restart = Callable[[Mapping[str, str]], None]

_ASKED = f"""tls_server_config: {{cert_file: server.pem, key_file: server.key}}
basic_auth_users:
  prometheus: {bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10)).decode()}
"""
_CERTIFIED = """tls_server_config:
  {cert_file: server.pem, key_file: server.key, client_ca_file: clients.pem,
   client_auth_type: RequireAndVerifyClientCert}
"""

_JOB = """
- job_name: {name}
  scheme: https
  scrape_interval: 1s
  scrape_timeout: 1s
  static_configs: [{{targets: ["127.0.0.1:8080"]}}]
  tls_config: {{ca_file: clients.pem{more}}}
{credentials}"""


def guarded(system: System, etc: Path, folder: Path, restart: Restart) -> list[str]:
    """Who knows the password, has the token or the certificate is let in, others not.

    Args:
        etc: where the unit's configuration is, as this machine sees it.
        folder: a new one, for Prometheus.
        restart: starts the unit with settings more.
    """
    folder.mkdir()
    authority = Authority()
    authority.server().write(etc, "server")
    authority.issue(name="prometheus").write(folder, "client")
    for place in (etc, folder):
        (place / "clients.pem").write_bytes(authority.pem)
    (etc / "tokens").write_text(f"prometheus {TOKEN}\n")
    (folder / "password").write_text(PASSWORD)
    (folder / "token").write_text(TOKEN)
    asked = {
        "password": "  basic_auth: {username: prometheus, password_file: password}",
        "token": "  authorization: {credentials_file: token}",
        "stranger": "",
    }
    (etc / "web.yml").write_text(_ASKED)
    _readable(system)
    doors = {
        "WEB_CONFIG_FILE": "/etc/api-exporter/web.yml",
        "WEB_BEARER_TOKENS_FILE": "/etc/api-exporter/tokens",
    }
    restart(doors)
    seen = [_let_in(system, folder, asked, {"password", "token"})]
    seen.append(f"the script: {_healthy(system)}")
    seen.append(_rotated(system, authority, etc))
    (etc / "web.yml").write_text(_CERTIFIED)
    restart({"WEB_CONFIG_FILE": doors["WEB_CONFIG_FILE"]})
    certified = {"certificate": "", "none": ""}
    seen.append(_let_in(system, folder, certified, {"certificate"}))
    seen.append(f"the script: {_healthy(system)}")
    for name in ("web.yml", "tokens", "server.pem", "server.key", "clients.pem"):
        (etc / name).unlink()
    return seen


def _readable(system: System) -> None:
    """For the unit's group, and for nobody else."""
    files = "web.yml tokens server.pem server.key clients.pem"
    command = f"cd /etc/api-exporter; chgrp api-exporter {files}; chmod 640 {files}"
    system.run("sh", "-c", command)


def _healthy(system: System) -> str:
    """What the script for monitoring systems says; raises Failed where it fails."""
    return system.run(f"{SOURCE}/deploy/check-health.sh").strip()


def _rotated(system: System, authority: Authority, etc: Path) -> str:
    """A new certificate is shown without a restart."""
    before = system.run("python3", "-c", _SHOWN)
    authority.server().write(etc, "server")
    _readable(system)
    after = system.until("CERTIFICATE", "python3", "-c", _OTHER, before)
    same("a certificate", True, before != after)
    return "a new certificate is shown without a restart"


def _let_in(
    system: System, folder: Path, jobs: Mapping[str, str], expected: set[str]
) -> str:
    text = "scrape_configs:" + "".join(
        _JOB.format(
            name=name,
            credentials=credentials,
            more=", cert_file: client.pem, key_file: client.key"
            if name == "certificate"
            else "",
        )
        for name, credentials in jobs.items()
    )
    (folder / "prometheus.yml").write_text(text)
    with _prometheus(system, folder):
        good: dict[str, float] = {}
        begin = time.monotonic()
        while time.monotonic() < begin + PATIENCE:
            system.until_got("success", PROMETHEUS, "/api/v1/query?query=up")
            good = _query(system, "sum_over_time(up[5m])")
            tried = _query(system, "count_over_time(up[5m])")
            enough = {
                name: good[name] if name in expected else tried[name] for name in good
            }
            if len(enough) == len(jobs) and min(enough.values()) >= 3:
                break
            time.sleep(0.5)
    same("let in", expected, {name for name, times in good.items() if times >= 3})
    same("kept out", 0, sum(good[name] for name in jobs.keys() - expected))
    out = ", ".join(sorted(jobs.keys() - expected))
    return f"a real Prometheus: {', '.join(sorted(expected))} let in; {out} kept out"


def _query(system: System, expression: str) -> dict[str, float]:
    said = system.get(PROMETHEUS, f"/api/v1/query?query={quote(expression)}")
    found = json.loads(said)["data"]["result"]
    return {r["metric"]["job"]: float(r["value"][1]) for r in found}


@contextmanager
def _prometheus(system: System, folder: Path) -> Iterator[None]:
    """This machine's program in that system's network."""
    command = (
        program("nsenter"),
        f"--target={system.leader}",
        "--net",
        program("prometheus"),
        "--config.file=prometheus.yml",
        f"--storage.tsdb.path=tsdb-{time.monotonic_ns()}",
        f"--web.listen-address={PROMETHEUS}",
    )
    with (folder / "prometheus.log").open("ab") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        running.terminate()
        running.wait(PATIENCE)

"""A real Prometheus that scrapes an exporter with and without credentials."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import bcrypt
from msgspec import Struct

from checks.acceptance.check import MAX_WAIT, Failed, expect, program, running
from tests.authority import Authority

PASSWORD, TOKEN = "a password of many words", "a-token-of-some-length"

PASSWORD_WEB = f"""tls_server_config: {{cert_file: server.pem, key_file: server.key}}
basic_auth_users:
  prometheus: {bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10)).decode()}
"""
"""A web configuration with a password. `tokens` is used in addition to it."""

CERTIFICATE_WEB = """tls_server_config:
  {cert_file: server.pem, key_file: server.key, client_ca_file: clients.pem,
   client_auth_type: RequireAndVerifyClientCert}
"""
"""A web configuration that requires a client certificate."""

PASSWORD_JOBS = {
    "password": "  basic_auth: {username: prometheus, password_file: password}",
    "token": "  authorization: {credentials_file: token}",
    "stranger": "",
}
"""Jobs for the first web configuration: the lines with their credentials."""

CERTIFICATE_JOBS = {"certificate": "", "none": ""}
"""Jobs for the second web configuration."""

DENIED = {"stranger", "none"}

_JOB = """
- job_name: {name}
  scheme: https
  scrape_interval: 1s
  scrape_timeout: 1s
  static_configs: [{{targets: ["{target}"]}}]
  tls_config: {{ca_file: clients.pem{more}}}
{credentials}"""

_OWN = ", cert_file: client.pem, key_file: client.key"


class Prometheus(Struct, frozen=True):
    """The configuration of a Prometheus.

    Attributes:
        folder: its configuration and data.
        target: the host and port that it scrapes over TLS.
        address: its own host and port.
        get: returns the response to a path at a host and port; raises Failed or
            OSError.
        prefix: the prefix of a command that runs in its network.
    """

    folder: Path
    target: str
    address: str
    get: Callable[[str, str], str]
    prefix: tuple[str | Path, ...] = ()

    def check_access(self, jobs: Mapping[str, str]) -> str:
        """Check that exactly the jobs with credentials succeed, or raise Failed."""
        text = "scrape_configs:" + "".join(
            _JOB.format(
                name=name,
                target=self.target,
                credentials=credentials,
                more=_OWN if name == "certificate" else "",
            )
            for name, credentials in jobs.items()
        )
        (self.folder / "prometheus.yml").write_text(text)
        allowed, denied = jobs.keys() - DENIED, jobs.keys() & DENIED
        good: dict[str, float] = {}
        command = (
            *self.prefix,
            program("prometheus"),
            "--config.file=prometheus.yml",
            f"--storage.tsdb.path=tsdb-{time.monotonic_ns()}",
            f"--web.listen-address={self.address}",
        )
        log = self.folder / "prometheus.log"
        with running(*command, log=log, cwd=self.folder):
            begin = time.monotonic()
            while time.monotonic() < begin + MAX_WAIT:
                good = self._query("sum_over_time(up[5m])")
                tried = self._query("count_over_time(up[5m])")
                seen = [good.get(name, 0) for name in allowed]
                if min(seen + [tried.get(name, 0) for name in denied]) >= 3:
                    break
                time.sleep(0.5)
        expect("let in", allowed, {name for name, times in good.items() if times >= 3})
        expect("kept out", 0, sum(good[name] for name in denied))
        names = ", ".join(sorted(allowed))
        return f"a real Prometheus: {names} let in; {', '.join(denied)} kept out"

    def _query(self, expression: str) -> dict[str, float]:
        """Return values by job, or none while it does not respond."""
        try:
            said = self.get(self.address, f"/api/v1/query?query={quote(expression)}")
        except (Failed, OSError):
            return {}
        found = json.loads(said)["data"]["result"]
        return {r["metric"]["job"]: float(r["value"][1]) for r in found}


def write_keys(authority: Authority, exporter: Path, prometheus: Path) -> None:
    """Write the keys of both into their folders, but no web configuration."""
    authority.server().write(exporter, "server")
    authority.issue(name="prometheus").write(prometheus, "client")
    for place in (exporter, prometheus):
        (place / "clients.pem").write_bytes(authority.pem)
    (exporter / "tokens").write_text(f"prometheus {TOKEN}\n")
    (prometheus / "password").write_text(PASSWORD)
    (prometheus / "token").write_text(TOKEN)

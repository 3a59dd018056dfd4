"""The program with TLS and authentication: its secrets, and name servers that hang."""

import http.client
import signal
import ssl
import sys
import time
from base64 import b64encode
from pathlib import Path

import bcrypt

from tests.access.folder import REQUIRED, SERVER, Folder
from tests.canary import assert_clean, forms
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import SOON, becomes, get, scraped, start, until
from tests.integration.promql import SECOND, Prometheus

HANGING = """
import socket, sys, time
resolve = socket.getaddrinfo
def hang(host, *rest, **more):
    if host.endswith(".example"):
        time.sleep(60)
    return resolve(host, *rest, **more)
socket.getaddrinfo = hang
from api_exporter.cli import main
main()
"""
"""The exporter on a machine whose name server does not answer."""

SECRETS = ("c4nary-passw0rd", "c4nary-token-of-all", "c4nary-token-2")

CERTIFICATE = "cert_file: ../door/client.pem, key_file: ../door/client.key"
_LOGIN = f"basic_auth: {{username: alice, password: {SECRETS[0]}}}"


JOBS = {
    "password": (CERTIFICATE, _LOGIN),
    "token": (CERTIFICATE, f"authorization: {{credentials: {SECRETS[1]}}}"),
    "no password": (CERTIFICATE, ""),
    "no certificate": ("", _LOGIN),
}
"""The certificate and the login of each job of a Prometheus."""

JOB = """
- job_name: {name}
  scheme: https
  static_configs: [{{targets: ["localhost:{port}"]}}]
  tls_config: {{ca_file: ../door/ca.pem, {certificate}}}
  {login}"""


def basic(pair: str) -> str:
    return f"Basic {b64encode(pair.encode()).decode()}"


class DoorTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = Folder(self, str(self.directory / "door"))
        self.folder.client.write(self.folder.path, "client")
        self.hash = bcrypt.hashpw(SECRETS[0].encode(), bcrypt.gensalt(4)).decode()
        self.users = f'basic_auth_users:\n  alice: "{self.hash}"\n'

    def test_prometheus(self) -> None:
        """A real Prometheus needs a client certificate, and a password or a token."""
        tokens = self.folder.path / "tokens"
        tokens.write_text(f"{SECRETS[1]}\n")
        environ = self.settings(
            WEB_CONFIG_FILE=str(self.folder.write(REQUIRED + self.users)),
            WEB_BEARER_TOKENS_FILE=str(tokens),
        )
        command = [*self.exporter, "--demo"]
        running = start(self, command, self.directory, environ)
        until(lambda: "its metrics at" in running.said(), "the port")
        text = "".join(
            JOB.format(name=name, port=self.port, certificate=certificate, login=login)
            for name, (certificate, login) in JOBS.items()
        )
        prometheus = Prometheus(self, self.directory, f"{SECOND}scrape_configs:{text}")

        def jobs(query: str) -> set[str]:
            return {one["metric"]["job"] for one in prometheus.samples(query)}

        becomes(JOBS.keys(), lambda: jobs("count_over_time(up[1m]) >= 3"))
        becomes({"password", "token"}, lambda: jobs("sum_over_time(up[1m]) >= 3"))
        self.assertEqual({"password", "token"}, jobs("max_over_time(up[1m]) == 1"))

    def test_name_servers(self) -> None:
        """Name servers that do not answer delay neither a password nor the end."""
        accounts = self.directory / "accounts"
        accounts.mkdir()
        for number in range(8):
            url = f"http://{number}.example:1"
            settings = f"UPSTREAM_API_URL={url}\nUPSTREAM_API_TOKEN=x\n"
            (accounts / f"{number}.conf").write_text(settings)
        environ = self.settings(
            ACCOUNTS_DIR=str(accounts),
            WEB_CONFIG_FILE=str(self.folder.write(self.users)),
            WEB_OPEN_PATHS="/metrics",
        )
        python = [sys.executable, "-c", HANGING]
        running = start(self, python, self.directory, environ)
        busy = "api_exporter_reactor_threads_in_use 4.0"
        until(lambda: scraped(self.url(), busy), "four look-ups that hang")
        begin = time.monotonic()
        shown = basic(f"alice:{SECRETS[0]}")
        self.assertEqual(200, get(self.url("/"), Authorization=shown)[0])
        self.assertLess(time.monotonic() - begin, SOON)
        self.assert_stops(running)

    def test_secrets(self) -> None:
        """Secrets are used and misused, with LOG_LEVEL=debug, and found nowhere."""
        password, token, other = SECRETS
        key = self.folder.server.key.decode()
        lines = [line for line in key.splitlines() if "--" not in line]
        others = [form for secret in SECRETS for form in forms(secret)]
        hidden = [*lines, *others, self.hash, self.hash[7:]]
        web, tokens = SERVER + self.users, self.folder.path / "tokens"
        tokens.write_text(f"{token}\n")
        environ = self.settings(
            WEB_CONFIG_FILE=str(self.folder.write(web)),
            WEB_BEARER_TOKENS_FILE=str(tokens),
            LOG_LEVEL="debug",
        )
        command = [*self.exporter, "--demo", "--enable-pprof"]
        running = start(self, command, self.directory, environ)
        until(lambda: "its metrics at" in running.said(), "the port")
        health = self.ended([*self.exporter, "--health"], environ)
        self.assertEqual(0, health.returncode, health.stdout)
        trusting = ssl.create_default_context(cadata=Folder.authority.pem.decode())
        client = http.client.HTTPSConnection("localhost", self.port, context=trusting)
        for path in ("/", "/health", "/metrics", "/nothing", "/debug/pprof/"):
            for shown, known in (
                (basic(f"alice:{password}"), True),
                (f"Bearer {token}", True),
                (basic(f"{password}:{token}"), False),
                (f"Bearer {other}", False),
                (f"Bearer {password} {token}", False),
                (password, False),
            ):
                client.request("GET", path, headers={"Authorization": shown})
                answer = client.getresponse()
                accepted = 404 if path == "/nothing" else 200
                refused = 200 if path == "/health" else 401
                self.assertEqual(accepted if known else refused, answer.status)
                assert_clean(self, hidden, answer.read(), path)
        client.close()
        self.folder.write(web.replace(f'alice: "{self.hash}"', f'"{self.hash}": alice'))
        tokens.write_text(f"{token}\n{other} {other} {other}\n")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: "the previous configuration stays in use" in running.said(), "it")
        ended = self.ended([*self.exporter, "--demo", "--check"], environ)
        self.assertNotEqual(0, ended.returncode)
        assert_clean(self, hidden, ended.stdout + ended.stderr, "--check")
        shown = Path(f"/proc/{running.process.pid}/cmdline").read_text()
        assert_clean(self, hidden, shown, "the process list")
        self.assert_stops(running)
        assert_clean(self, hidden, running.said(), "the log")

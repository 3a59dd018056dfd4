"""The program with authentication: its listeners, name servers that hang, secrets."""

import http.client
import signal
import socket
import ssl
import sys
import time
from base64 import b64encode
from functools import partial
from pathlib import Path

import bcrypt

from tests.access.folder import SERVER, Folder
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import (
    SOON,
    Running,
    becomes,
    get,
    scraped,
    start,
    until,
)
from tests.integration.promql import SECOND, Prometheus
from tests.integration.test_canary import CanaryTestCase, forms

PASSWORD = "open sesame"

HANGING = """
import socket, sys, time
resolve = socket.getaddrinfo
def hang(host, *rest, **more):
    if host == "hangs.example":
        time.sleep(60)
    return resolve(host, *rest, **more)
socket.getaddrinfo = hang
from api_exporter.cli import main
main()
"""
"""The exporter on a machine whose name server does not answer."""

TOKEN = "a-token-of-some-length"

CERTIFICATE = "cert_file: ../door/client.pem, key_file: ../door/client.key"
_LOGIN = f"basic_auth: {{username: alice, password: {PASSWORD}}}"

REQUIRED = (
    f"{SERVER}  client_ca_file: ca.pem\n"
    "  client_auth_type: RequireAndVerifyClientCert\n"
)

JOBS = {
    "password": (CERTIFICATE, _LOGIN),
    "token": (CERTIFICATE, f"authorization: {{credentials: {TOKEN}}}"),
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

STAYS = "the previous configuration stays in use"


def users() -> str:
    """Return a section with one user."""
    digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    return f'basic_auth_users:\n  alice: "{digest}"\n'


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=Folder.authority.pem.decode())


def basic(password: str = PASSWORD) -> str:
    return f"Basic {b64encode(f'alice:{password}'.encode()).decode()}"


class DoorTestCase(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = Folder(self, str(self.directory / "door"))
        self.folder.client.write(self.folder.path, "client")
        self.tokens = self.folder.path / "tokens"

    def door(self, web: str | None, *tokens: str, **others: str) -> dict[str, str]:
        """The environment of a demo with these files."""
        if web is not None:
            others["WEB_CONFIG_FILE"] = str(self.folder.write(web))
        if tokens:
            self.tokens.write_text("".join(f"{token}\n" for token in tokens))
            others["WEB_BEARER_TOKENS_FILE"] = str(self.tokens)
        return self.settings(**others)

    def guarded(self, environ: dict[str, str], *flags: str) -> Running:
        """Start an exporter of the demo whose pages may need credentials."""
        command = [*self.exporter, "--demo", *flags]
        return self.saying("its metrics at", environ, command)


class StartTests(DoorTestCase):
    def test_listeners(self) -> None:
        """Each listener requires passwords, a UNIX socket without TLS; --health needs
        none.
        """
        path = self.directory / "s"
        address = f"127.0.0.1:{self.port},unix:{path}"
        environ = self.door(SERVER + users(), LISTEN_ADDRESS=address)
        running = self.guarded(environ)
        until(lambda: f"unix:{path}" in running.said(), "the socket")
        for shown, expected in (("", 401), (basic(), 200)):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(
                    f"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                    f"Authorization: {shown}\r\n\r\n".encode()
                )
                self.assertIn(f" {expected} ".encode(), client.recv(100))
        secured = http.client.HTTPSConnection(
            "localhost", self.port, context=trusting()
        )
        secured.request("GET", "/")
        self.assertEqual(401, secured.getresponse().status)
        secured.close()
        ended = self.ended([*self.exporter, "--health"], environ)
        expected_line = f"OK: https://127.0.0.1:{self.port}/health: 200\n"
        self.assertEqual((0, expected_line), (ended.returncode, ended.stdout))

    def test_prometheus(self) -> None:
        """A real Prometheus needs a client certificate, and a password or a token."""
        self.guarded(self.door(REQUIRED + users(), TOKEN))
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


class LookUpTests(DoorTestCase):
    def test_name_servers(self) -> None:
        """Name servers that do not answer delay neither a password nor the end."""
        accounts = self.directory / "accounts"
        accounts.mkdir()
        for number in range(8):
            settings = "UPSTREAM_API_URL=http://hangs.example:1\nUPSTREAM_API_TOKEN=x\n"
            (accounts / f"{number}.conf").write_text(settings)
        environ = self.door(
            users(), ACCOUNTS_DIR=str(accounts), WEB_OPEN_PATHS="/metrics"
        )
        python = [sys.executable, "-c", HANGING]
        running = start(self, python, self.directory, environ)
        busy = "api_exporter_reactor_threads_in_use 4.0"
        until(lambda: scraped(self.url(), busy), "four look-ups that hang")
        begin = time.monotonic()
        self.assertEqual(200, get(self.url("/"), Authorization=basic())[0])
        self.assertLess(time.monotonic() - begin, SOON)
        self.assert_stops(running)


class CanaryTests(CanaryTestCase, DoorTestCase):
    """Keys, passwords, tokens and hashes are used and misused, and found nowhere."""

    SECRETS = ("c4nary-passw0rd", "c4nary-token-of-all", "c4nary-token-2")

    def setUp(self) -> None:
        super().setUp()
        self.hash = bcrypt.hashpw(self.SECRETS[0].encode(), bcrypt.gensalt(4)).decode()
        server = self.folder.server
        self.web = f'{SERVER}basic_auth_users:\n  alice: "{self.hash}"\n'
        key = [line for line in server.key.decode().splitlines() if "--" not in line]
        hidden = [form for secret in self.SECRETS for form in forms(secret)]
        self.hidden = [*key, *hidden, self.hash, self.hash[7:]]

    def has_more(self, running: Running, lines: int) -> bool:
        """Return whether another line reports that a file is not used."""
        return running.said().count(STAYS) > lines

    def test_life(self) -> None:
        """Used right and wrong, and with files that break, at LOG_LEVEL=debug."""
        password, token, other = self.SECRETS
        environ = self.door(self.web, token, LOG_LEVEL="debug")
        running = self.guarded(environ, "--enable-pprof")
        client = http.client.HTTPSConnection("localhost", self.port, context=trusting())

        def visit() -> None:
            wrong = b64encode(f"{password}:{token}".encode()).decode()
            right = b64encode(f"alice:{password}".encode()).decode()
            for path in ("/", "/health", "/metrics", "/nothing", "/debug/pprof/"):
                for shown in (
                    f"Basic {right}",
                    f"Basic {wrong}",
                    f"Bearer {token}",
                    f"Bearer {other}",
                    f"Bearer {password} {token}",
                    password,
                ):
                    client.request("GET", path, headers={"Authorization": shown})
                    answer = client.getresponse()
                    self.assertIn(answer.status, (200, 401, 404))
                    self.assert_clean(answer.read(), path)
            client.close()  # the server ends what is idle for long

        visit()
        key = self.folder.server.key.decode().replace("\n", "\n    ")
        for broken in (
            self.web.replace("key_file: server.key", f"key: |\n    {key}"),
            self.web.replace("key_file: server.key", f"key |\n    {key}"),
            self.web.replace("key_file: server.key", f"key_file: |\n    {key}"),
            self.web.replace(f'"{self.hash}"', f'"{self.hash}x"'),
            self.web.replace(f'alice: "{self.hash}"', f'"{self.hash}": alice'),
            f"{self.web}  alice: *{self.hash[7:20]}\n",
        ):
            lines = running.said().count(STAYS)
            self.folder.write(broken)
            self.tokens.write_text(f"{token}\n{token}\n{other} {other} {other}\n")
            running.process.send_signal(signal.SIGHUP)
            until(partial(self.has_more, running, lines), "a line")
            ended = self.ended([*self.exporter, "--demo", "--check"], environ)
            self.assertNotEqual(0, ended.returncode)
            self.assert_clean(ended.stdout + ended.stderr, "--check")
        visit()
        told = Path(f"/proc/{running.process.pid}/cmdline").read_bytes()
        self.assert_clean(told, "the process list")
        self.assertEqual(0, running.stop()[0])
        self.assert_clean(running.said(), "the log")
        self.assertNotIn("Traceback", running.said())

"""The program with authentication: start, reports, Prometheus and many clients."""

import http.client
import os
import secrets
import signal
import socket
import ssl
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path

import bcrypt

from tests import THOROUGH
from tests.access.certificates import lines, rsa_key
from tests.access.folder import SERVER, Folder
from tests.integration.programs import (
    PATIENCE,
    SOON,
    Running,
    becomes,
    free_port,
    get,
    program,
    scraped,
    start,
    until,
)
from tests.integration.promql import samples
from tests.integration.test_canary import forms
from tests.integration.test_machine import HANGING
from tests.integration.test_operations import OperatedTestCase

TOKEN, LIMITED = "a-token-that-opens-all", "a-token-that-opens-one"

PASSWORD = "open sesame"

STAYS = "the previous configuration stays in use"

GUESSING = ("-m", "tests.integration.guessing")

REQUIRED = (
    f"{SERVER}  client_ca_file: ca.pem\n"
    "  client_auth_type: RequireAndVerifyClientCert\n"
)


def users(cost: int = 4) -> str:
    """A section with one user."""
    digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(cost)).decode()
    return f'basic_auth_users:\n  alice: "{digest}"\n'


def basic(password: str = PASSWORD) -> str:
    return f"Basic {b64encode(f'alice:{password}'.encode()).decode()}"


class DoorTestCase(OperatedTestCase):
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

    def running(
        self, environ: dict[str, str], *flags: str, directory: Path | None = None
    ) -> Running:
        """One that serves, with its output in a directory."""
        command = [*self.exporter, "--demo", *flags]
        running = start(self, command, directory or self.directory, environ)
        until(
            lambda: (
                "its metrics at" in running.said() or running.process.poll() is not None
            ),
            "a line that says where it is",
        )
        self.assertIsNone(running.process.poll(), running.said())
        return running


class StartTests(DoorTestCase):
    def test_wrong(self) -> None:
        """An error in a file ends the start and --check, with file, line and key, and
        without a traceback.
        """
        self.folder.authority.server(rsa_key()).write(self.folder.path, "rsa")
        daemon = [[*self.twistd, "--demo"], [*self.exporter, "--demo", "--check"]]
        version = f"{SERVER}  min_version: TLS111\n"
        for web, words, status, more in (
            (version, ":4: tls_server_config.min_version", 78, daemon),
            ("basic_auth_users: {alice: secret}\n", ":1: basic_auth_users: ", 78, []),
            (SERVER.replace("server.key", "none"), ":3: tls_server_config.key_", 1, []),
            (
                SERVER.replace("server.key", "rsa.key"),
                ":3: tls_server_config.key_file: the key does not belong to the"
                " certificate",
                78,
                daemon,
            ),
        ):
            environ = self.door(web, DEMO_PEERS="1")
            for command in ([*self.exporter, "--demo"], *more):
                ended = self.ended(command, environ)
                self.assertEqual(status, ended.returncode, ended.stderr)
                expected = f"api-exporter: WEB_CONFIG_FILE: {self.folder.file}{words}"
                self.assertIn(expected, ended.stderr)
                self.assertNotIn("Traceback", ended.stderr)
                self.assertNotIn("secret", ended.stderr)

    def test_contradiction(self) -> None:
        """An `ssl:` endpoint beside the file is refused at the start."""
        both = f"{self.folder.path}/server.pem"
        environ = self.door("", LISTEN_ADDRESS=f"ssl:0:privateKey={both}")
        ended = self.ended([*self.exporter, "--demo"], environ)
        self.assertEqual(78, ended.returncode)
        self.assertIn("WEB_CONFIG_FILE and an ssl: endpoint", ended.stderr)

    def test_nobody_pays(self) -> None:
        """Without the settings, no module of access control is imported.

        bcrypt is not checked: cryptography imports it if it is installed.
        """
        for door, web, tokens, absent in (
            (False, None, (), ("yaml", "api_exporter.access.authorization")),
            (True, None, (TOKEN,), ("yaml", "api_exporter.access.tls_context")),
        ):
            environ = self.door(web, *tokens, PYTHONPROFILEIMPORTTIME="1")
            running = self.running(environ)
            imported = {
                line.rpartition("|")[2].strip() for line in running.said().splitlines()
            }
            self.assertEqual(door, "api_exporter.access.configuration" in imported)
            self.assertEqual([], [name for name in absent if name in imported])
            running.stop()

    def test_everybody(self) -> None:
        """A server on all interfaces without authentication has one warning."""
        line = "Metrics are readable by anyone who can connect"
        for address, web, expected in (
            (f":{self.port}", None, 1),
            (f":{self.port}", REQUIRED, 0),
        ):
            running = self.running(self.door(web, LISTEN_ADDRESS=address))
            running.stop()
            self.assertEqual(expected, running.said().count(line), running.said())


class ReportTests(DoorTestCase):
    def test_check(self) -> None:
        """--check says which doors there are."""
        environ = self.door(REQUIRED + users(), TOKEN)
        ended = self.ended([*self.exporter, "--demo", "--check"], environ)
        self.assertEqual(0, ended.returncode, ended.stderr)
        self.assertEqual(
            [
                "access: TLS, client certificates required and verified",
                "access: passwords of 1 user",
                "access: 1 token, 0 limited to some accounts",
            ],
            ended.stdout.splitlines()[:3],
        )

    def test_health(self) -> None:
        """--health works with any authentication, and needs no password."""
        scheme = "https"
        for web, words in (
            (SERVER + users(), "/health: 200"),
            (REQUIRED, "/health: the exporter runs and requires a client certificate"),
            (users(), "/health: 200"),
        ):
            environ = self.door(web, TOKEN)
            running = self.running(environ)
            ended = self.ended([*self.exporter, "--health"], environ)
            scheme = "https" if "tls_" in web else "http"
            expected = f"OK: {scheme}://127.0.0.1:{self.port}{words}\n"
            self.assertEqual((0, expected), (ended.returncode, ended.stdout))
            running.stop()

    def test_listeners(self) -> None:
        """Every listener requires passwords; a UNIX socket has no TLS."""
        path = self.directory / "s"
        address = f"127.0.0.1:{self.port},unix:{path}"
        self.running(self.door(SERVER + users(), LISTEN_ADDRESS=address))
        until(path.exists, "the socket")
        for shown, expected in (("", 401), (basic(), 200)):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(
                    f"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                    f"Authorization: {shown}\r\n\r\n".encode()
                )
                self.assertIn(f" {expected} ".encode(), client.recv(100))
        trusting = ssl.create_default_context(cadata=Folder.authority.pem.decode())
        secured = http.client.HTTPSConnection("localhost", self.port, context=trusting)
        secured.request("GET", "/")
        self.assertEqual(401, secured.getresponse().status)
        secured.close()

    def test_looked_at(self) -> None:
        """SIGHUP looks at the files at once, and says what is wrong with them."""
        running = self.running(self.door(users()))
        self.folder.write("nonsense: 1\n")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: STAYS in running.said(), "a line")
        self.assertIn(f"{self.folder.file}:1: nonsense: no such key", running.said())
        self.assertEqual(401, get(self.url())[0])
        status, _, page = get(self.url(), Authorization=basic())
        gauge = b"api_exporter_web_config_last_reload_successful 0.0\n"
        self.assertEqual(200, status)
        self.assertIn(gauge, page)


PROMETHEUS = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: password
  scheme: https
  tls_config: {{ca_file: door/ca.pem}}
  basic_auth: {{username: alice, password_file: password}}
  static_configs: [{{targets: ["localhost:{port}"]}}]
- job_name: wrong-password
  scheme: https
  tls_config: {{ca_file: door/ca.pem}}
  basic_auth: {{username: alice, password: wrong}}
  static_configs: [{{targets: ["localhost:{port}"]}}]
- job_name: token
  scheme: https
  tls_config: {{ca_file: door/ca.pem}}
  authorization: {{credentials_file: token}}
  static_configs: [{{targets: ["localhost:{port}"]}}]
- job_name: accounts
  scheme: https
  tls_config: {{ca_file: door/ca.pem}}
  authorization: {{credentials_file: limited}}
  http_sd_configs:
  - url: https://localhost:{port}/sd/accounts
    tls_config: {{ca_file: door/ca.pem}}
    authorization: {{type: Bearer, credentials_file: limited}}
- job_name: certificate
  scheme: https
  tls_config:
    ca_file: door/ca.pem
    cert_file: door/client.pem
    key_file: door/client.key
  static_configs: [{{targets: ["localhost:{other}"]}}]
- job_name: no-certificate
  scheme: https
  tls_config: {{ca_file: door/ca.pem}}
  static_configs: [{{targets: ["localhost:{other}"]}}]
"""


class PrometheusTests(DoorTestCase):
    def test_doors(self) -> None:
        """A real Prometheus comes in by each door, and by none with a wrong key."""
        prometheus = program("prometheus")
        other, web = free_port(), free_port()
        (self.directory / "other").mkdir()
        second = Folder(self, str(self.directory / "other" / "door"))
        second.write(REQUIRED)
        environ = self.settings(
            WEB_CONFIG_FILE=str(second.file), LISTEN_ADDRESS=f"127.0.0.1:{other}"
        )
        self.running(environ, directory=self.directory / "other")
        accounts = self.door(
            SERVER + users(), TOKEN, DEMO_ACCOUNTS="3", DEMO_PEERS="20"
        )
        self.tokens.write_text(f"{TOKEN}\none account=customer-001,none {LIMITED}\n")
        self.running(accounts)
        for name, text in (
            ("password", PASSWORD),
            ("token", TOKEN),
            ("limited", LIMITED),
            ("prometheus.yml", PROMETHEUS.format(port=self.port, other=other)),
        ):
            (self.directory / name).write_text(text)
        (self.directory / "prometheus").mkdir()
        start(
            self,
            [
                prometheus,
                f"--config.file={self.directory}/prometheus.yml",
                "--storage.tsdb.path=tsdb",
                f"--web.listen-address=127.0.0.1:{web}",
            ],
            self.directory / "prometheus",
        )

        def up() -> dict[str, str]:
            return {
                one["metric"]["job"] + one["metric"].get("account", ""): one["value"][1]
                for one in samples(web, "up")
            }

        expected = {
            "password": "1",
            "wrong-password": "0",
            "token": "1",
            "accountscustomer-001": "1",
            "certificate": "1",
            "no-certificate": "0",
        }
        becomes(expected, up)


class CrowdTests(DoorTestCase):
    def percentile(self, ask: Callable[[], int], times: int) -> float:
        """Seconds in which all but one of a hundred requests are answered with 200."""
        taken = []
        for _ in range(times):
            begin = time.perf_counter()
            self.assertEqual(200, ask())
            taken.append(time.perf_counter() - begin)
        return sorted(taken)[int(0.99 * times) - 1]

    def test_guessing(self) -> None:
        """While 100 clients guess passwords, a known client is answered in time."""
        self.running(self.door(users(cost=10)))
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE
        )

        def asked(path: str, shown: str) -> Callable[[], int]:
            def ask() -> int:
                connection.request("GET", path, headers={"Authorization": shown})
                answer = connection.getresponse()
                answer.read()
                return answer.status

            return ask

        pages = (("/metrics", basic()), ("/health", ""))
        asked(*pages[0])()  # from now on it is known
        alone = max(self.percentile(asked(*page), 100) for page in pages)
        guessing = start(
            self,
            # Elsewhere, so to say: they are not to take our own time.
            ["nice", sys.executable, *GUESSING, str(self.port), "100", "8"],
            self.folder.path,
            {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        until(lambda: "begin" in guessing.said(), "the first guesses")
        scrape, health = (self.percentile(asked(*page), 100) for page in pages)
        connection.close()
        guessing.process.wait(PATIENCE)
        said = guessing.said()
        self.assertIn("503", said)
        self.assertIn("401", said)
        self.assertNotIn("200", said)
        if THOROUGH:
            # A machine that is slow without guesses is slower by as much with them.
            self.assertLess(scrape, 0.1 + 3 * alone, said)
            self.assertLess(health, 0.1 + 3 * alone, said)

    def test_restart(self) -> None:
        """While 36 clients guess, a right password that is not known yet comes in."""
        self.running(self.door(users(cost=10), WEB_OPEN_PATHS="/metrics"))
        start(
            self,
            [sys.executable, *GUESSING, str(self.port), "36", "20"],
            self.folder.path,
            {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        none = "api_exporter_web_unauthorized_total 0.0"
        until(lambda: not scraped(self.url(), none), "the first guesses")
        found = [get(self.url("/"), Authorization=basic())[0] for _ in range(7)]
        self.assertEqual([200] * 7, found)

    def test_name_servers(self) -> None:
        """A right password does not wait for name servers that do not answer."""
        accounts = self.directory / "accounts"
        accounts.mkdir()
        for number in range(8):
            settings = "UPSTREAM_API_URL=http://hangs.example:1\nUPSTREAM_API_TOKEN=x\n"
            (accounts / f"{number}.conf").write_text(settings)
        environ = self.door(
            users(), ACCOUNTS_DIR=str(accounts), WEB_OPEN_PATHS="/metrics"
        )
        python = [str(self.bin / "python"), "-c", HANGING]
        start(self, python, self.directory, environ)
        busy = "api_exporter_reactor_threads_in_use 4.0"
        until(lambda: scraped(self.url(), busy), "four look-ups that hang")
        begin = time.monotonic()
        self.assertEqual(200, get(self.url("/"), Authorization=basic())[0])
        self.assertLess(time.monotonic() - begin, SOON)


class HandshakeTests(DoorTestCase):
    HANDSHAKES = 500

    def test_many(self) -> None:
        """After many handshakes, half of them broken off, all is as before."""
        running = self.running(self.door(SERVER + users()))
        trusting = ssl.create_default_context(cadata=Folder.authority.pem.decode())

        def shake(count: int) -> None:
            for number in range(count):
                with socket.create_connection(("127.0.0.1", self.port)) as client:
                    if number % 2:
                        # The head of a ClientHello, and no more of it.
                        client.sendall(
                            b"\x16\x03\x01\x02\x00" + secrets.token_bytes(99)
                        )
                        continue
                    with trusting.wrap_socket(client, server_hostname="localhost") as s:
                        s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                        self.assertTrue(s.recv(100))

        def files() -> int:
            return len(os.listdir(f"/proc/{running.process.pid}/fd"))

        def kilobytes() -> int:
            status = Path(f"/proc/{running.process.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0])

        shake(100)
        time.sleep(0.5)
        before, memory = files(), kilobytes()
        shake(self.HANDSHAKES)
        until(lambda: files() <= before + 2, "descriptors as before")
        self.assertLess(kilobytes() - memory, 8192)
        self.assertNotIn("Traceback", running.said())
        status, _ = running.stop()
        self.assertEqual(0, status)


class CanaryTests(DoorTestCase):
    """Keys, passwords, tokens and hashes are used and misused, and found nowhere."""

    SECRETS = ("c4nary-passw0rd", "c4nary-token-of-all", "c4nary-token-2")

    def setUp(self) -> None:
        super().setUp()
        self.hash = bcrypt.hashpw(self.SECRETS[0].encode(), bcrypt.gensalt(4)).decode()
        server = self.folder.server
        self.web = (
            f"tls_server_config:\n  cert: {lines(server.certificate)}\n"
            f"  key: {lines(server.key)}\n"
            f'basic_auth_users:\n  alice: "{self.hash}"\n'
        )
        key = [line for line in server.key.decode().splitlines() if "--" not in line]
        hidden = [form for secret in self.SECRETS for form in forms(secret)]
        self.hidden = [*key, *hidden, self.hash, self.hash[7:]]

    def assert_clean(self, text: str | bytes, what: str) -> None:
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        for secret in self.hidden:
            self.assertFalse(secret in text, f"{secret} in {what}: {text[-2000:]}")

    def has_more(self, running: Running, lines: int) -> bool:
        """Return whether another line reports that a file is not used."""
        return running.said().count(STAYS) > lines

    def test_life(self) -> None:
        """Used right and wrong, and with files that break, at LOG_LEVEL=debug."""
        password, token, other = self.SECRETS
        environ = self.door(self.web, token, LOG_LEVEL="debug")
        running = self.running(environ, "--enable-pprof")
        trusting = ssl.create_default_context(cadata=Folder.authority.pem.decode())
        client = http.client.HTTPSConnection("localhost", self.port, context=trusting)

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
        for broken in (
            self.web.replace("  key: |", "  key |"),
            self.web.replace("    -----BEGIN PRIVATE", "    -----BEGIN PUBLIC"),
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

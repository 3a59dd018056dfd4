"""The program in its operator's hands: supervised, rotated, checked, stopped."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import stat
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from unittest import SkipTest

from cryptography.hazmat.primitives import serialization
from twisted.trial.unittest import TestCase

from simulation.company.network import SimulatedNetwork
from tests.integration.programs import (
    ALL_READ,
    PATIENCE,
    SOON,
    Running,
    environment,
    free_port,
    get,
    program,
    scraped,
    start,
    until,
)
from tests.integration.test_daemon import installed
from tests.integration.test_failures import self_signed

GOOD = "nbp_0operator0operator0operator0op1yFJMy"
PLAIN_404 = (404, "text/plain; charset=utf-8", b"404 page not found\n")

Answer = tuple[int, str, bytes]
"""Status, content type and body."""


class Upstream(ThreadingHTTPServer):
    """The simulated network behind a real server, with refusals and faults.

    Attributes:
        tokens: accepted tokens.
        faults: other answers by path, or for "*", all paths. They are functions of the
            Authorization header.
        pem: a file with key and certificate for TLS.
        `asked`: the requested paths, in order.
    """

    daemon_threads = True

    def __init__(self, test: TestCase, *tokens: str, pem: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self._scheme = "http"
        if pem is not None:
            self._scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            # Shaking hands is left to the thread of the connection.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.tokens = set(tokens)
        self.faults: dict[str, Callable[[str], Answer]] = {}
        self.asked: list[str] = []
        self._network = SimulatedNetwork(20)
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        test.addCleanup(thread.join, PATIENCE)
        test.addCleanup(self.server_close)
        test.addCleanup(self.shutdown)

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.server_address[1]}"

    def answer(self, path: str, authorization: str) -> Answer:
        self.asked.append(path)
        fault = self.faults.get(path, self.faults.get("*"))
        if fault is not None:
            return fault(authorization)
        body = self._network.body(path, time.time())
        if body is None:
            return PLAIN_404
        if authorization.removeprefix("Bearer ") not in self.tokens:
            return 401, "application/json", b'{"message":"token invalid","code":401}\n'
        return 200, "application/json", b"".join(body)

    def handle_error(self, *_: object) -> None:
        """A client that goes away is no news."""


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization", "")
        status, media, body = self.server.answer(self.path, authorization)
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def key_and_certificate(directory: Path) -> tuple[Path, Path]:
    """Two files: a key with its certificate for `localhost`, and the latter alone."""
    made = self_signed("localhost")
    key = made.privateKey.original.to_cryptography_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    both, public = directory / "both.pem", directory / "public.pem"
    both.write_bytes(made.dumpPEM() + key)
    public.write_bytes(made.dumpPEM())
    return both, public


class OperatedTestCase(TestCase):
    """An installed program and a directory of its own."""

    def setUp(self) -> None:
        self.bin = installed() / "bin"
        made = tempfile.TemporaryDirectory()  # its name is short enough for a socket
        self.addCleanup(made.cleanup)
        self.directory = Path(made.name)
        self.port = free_port()

    @property
    def exporter(self) -> list[str]:
        return [str(self.bin / "api-exporter")]

    @property
    def twistd(self) -> list[str]:
        code = "from twisted.scripts.twistd import run; run()"
        return [str(self.bin / "python"), "-c", code, "-n", "api-exporter"]

    def url(self, path: str = "/metrics") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def settings(self, **others: str) -> dict[str, str]:
        """The environment of an exporter that serves on our port."""
        return environment(
            **{
                "LISTEN_ADDRESS": f"127.0.0.1:{self.port}",
                "DEMO_PEERS": "50",
                "API_RETRY_ATTEMPTS": "1",
                **others,
            }
        )

    def reading(self, upstream: str, **others: str) -> dict[str, str]:
        """The environment of one that reads an upstream."""
        return self.settings(UPSTREAM_API_URL=upstream, **others)

    def started(
        self, command: list[str], environ: dict[str, str], sign: str = ALL_READ
    ) -> Running:
        """A running exporter whose metrics show a sign."""
        running = start(self, command, self.directory, environ)
        until(
            lambda: scraped(self.url(), sign) or running.process.poll() is not None,
            sign,
        )
        self.assertIsNone(running.process.poll(), running.said())
        return running

    def ended(
        self, command: list[str], environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A program that has ended by itself."""
        return subprocess.run(
            command,
            cwd=self.directory,
            env=environment() if environ is None else environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


class SupervisedTests(OperatedTestCase):
    """An exporter with a supervisor: us."""

    def setUp(self) -> None:
        super().setUp()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        path = self.directory / "notify"
        self.socket.bind(str(path))
        self.environ = self.settings(NOTIFY_SOCKET=str(path))

    def supervised(self) -> Running:
        """Started as systemd does it: the watchdog is meant for this process."""
        script = 'WATCHDOG_USEC=1000000 WATCHDOG_PID=$$ exec "$@"'
        command = ["sh", "-c", script, "sh", *self.exporter, "--demo"]
        return start(self, command, self.directory, self.environ)

    def heard(self, patience: float = PATIENCE) -> str:
        """The next message; TimeoutError where none comes."""
        self.socket.settimeout(patience)
        return self.socket.recv(65536).decode()

    def wait_for(self, prefix: str, patience: float = PATIENCE) -> str:
        """The next message that begins so."""
        end = time.monotonic() + patience
        while not (message := self.heard(patience)).startswith(prefix):
            self.assertLess(time.monotonic(), end, prefix)
        return message

    def test_life(self) -> None:
        """READY when it can be reached, STATUS and signs of life, at last STOPPING."""
        running = self.supervised()
        self.assertEqual("READY=1", self.heard())
        self.assertEqual(200, get(self.url("/health"))[0])
        status = self.wait_for("STATUS=")
        self.assertEqual("STATUS=peers starting", status)
        status = self.wait_for("STATUS=")
        self.assertRegex(status, r"^STATUS=peers fresh, \d+ peers, \d+\.\d s$")
        times = []
        for _ in range(6):
            self.wait_for("WATCHDOG=1")
            times.append(time.monotonic())
        # Half of them: a busy machine may keep us, or it, waiting now and then.
        gaps = [later - sooner for sooner, later in pairwise(times)]
        self.assertLess(statistics.median(gaps), 1.0, gaps)
        code, _ = running.stop()
        self.assertEqual(0, code, running.said())
        self.assertEqual("STOPPING=1\nSTATUS=stopping", self.wait_for("STOPPING"))
        with self.assertRaises(TimeoutError):
            self.heard(0.1)

    def test_stuck(self) -> None:
        """A process that does not run sends no sign of life, and does again later."""
        running = self.supervised()
        self.wait_for("WATCHDOG=1")
        running.process.send_signal(signal.SIGSTOP)
        self.addCleanup(running.process.send_signal, signal.SIGCONT)
        self.wait_for_silence()
        with self.assertRaises(TimeoutError):
            self.heard(1.5)
        running.process.send_signal(signal.SIGCONT)
        self.wait_for("WATCHDOG=1")

    def wait_for_silence(self) -> None:
        """Read what was sent before."""
        while True:
            try:
                self.heard(0.1)
            except TimeoutError:
                return

    def test_blocked_loop(self) -> None:
        """Signs of life come from the event loop: one that is stuck sends none."""
        code = (
            "import os, signal, sys, time\n"
            "def sleep(*_):\n"
            "    os.write(1, b'asleep\\n')\n"
            "    time.sleep(6)\n"
            "signal.signal(signal.SIGUSR2, sleep)\n"
            "sys.argv[:] = ['api-exporter', '--demo']\n"
            "from api_exporter.cli import main\n"
            "main()\n"
        )
        self.environ["WATCHDOG_USEC"] = "1000000"
        command = [str(self.bin / "python"), "-c", code]
        running = start(self, command, self.directory, self.environ)
        self.wait_for("WATCHDOG=1")
        running.process.send_signal(signal.SIGUSR2)
        until(lambda: "asleep" in running.said(), "a loop that is stuck")
        self.wait_for_silence()
        with self.assertRaises(TimeoutError):
            self.heard(1.2)
        self.wait_for("WATCHDOG=1")

    def test_not_started(self) -> None:
        """A program that cannot listen never says that it is ready."""
        with socket.create_server(("127.0.0.1", self.port)):
            ended = self.ended([*self.exporter, "--demo"], self.environ)
        self.assertEqual(1, ended.returncode)
        with self.assertRaises(TimeoutError):
            self.heard(0.1)


class StopTests(OperatedTestCase):
    def scraper(self) -> socket.socket:
        """Return a client that has requested the metrics and reads very little."""
        client = socket.socket()
        self.addCleanup(client.close)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        return client

    def large(self) -> Running:
        """An exporter whose page is larger than what the system buffers."""
        environ = self.settings(DEMO_PEERS="4000")
        return self.started([*self.exporter, "--demo"], environ)

    def test_slow_scrape(self) -> None:
        """A client that reads slowly, but reads, gets the whole page; then it ends."""
        running = self.large()
        client = self.scraper()
        received = client.recv(1000)
        running.process.send_signal(signal.SIGTERM)
        head = received.partition(b"\r\n\r\n")[0]
        size = 0
        while chunk := client.recv(65536):
            size += len(chunk)
            time.sleep(0.001)  # as slow as a page of this size may be read
        [length] = re.findall(rb"Content-Length: (\d+)", head)
        self.assertGreater(int(length), 1_000_000)
        self.assertEqual(int(length), size + len(received) - len(head) - 4)
        self.assertEqual(0, running.process.wait(PATIENCE), running.said())
        self.assertNotIn("Traceback", running.said())

    def test_no_reader(self) -> None:
        """A client that never reads is given five seconds; then it ends well."""
        running = self.large()
        self.scraper().recv(1)
        status, seconds = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertGreater(seconds, 4.5)
        self.assertLess(seconds, 5.0 + SOON)
        self.assertNotIn("Traceback", running.said())

    def test_refused_meanwhile(self) -> None:
        """While the last scrape is finished, new connections are refused."""
        running = self.large()
        self.scraper().recv(1)
        running.process.send_signal(signal.SIGTERM)
        until(lambda: get(self.url("/health"))[0] == 0, "a refusal")
        self.assertIsNone(running.process.poll())
        self.assertEqual(0, running.process.wait(PATIENCE), running.said())

    def test_impatient(self) -> None:
        """A second SIGTERM meanwhile is not an error."""
        running = self.large()
        self.scraper().recv(1)
        running.process.send_signal(signal.SIGTERM)
        until(lambda: get(self.url("/health"))[0] == 0, "a refusal")
        status, _ = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertNotIn("Traceback", running.said())

    def test_upstream_call(self) -> None:
        """A call that the upstream does not answer does not hold up the end."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            environ = self.reading(url, UPSTREAM_API_TOKEN=GOOD)
            running = start(self, self.exporter, self.directory, environ)
            until(lambda: get(self.url("/health"))[0] == 200, "the start")
            status, seconds = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertLess(seconds, SOON)
        self.assertNotIn("Traceback", running.said())


class ReportTests(OperatedTestCase):
    def report(self, flag: str, **settings: str) -> tuple[int, str, str]:
        """Status, standard output and standard error of a run that ends by itself."""
        ended = self.ended([*self.exporter, flag], self.settings(**settings))
        self.assertNotIn("Traceback", ended.stdout + ended.stderr)
        return ended.returncode, ended.stdout, ended.stderr

    def test_check_demo(self) -> None:
        """Where all is well, each path has its row, and the status is 0; what needs
        attention comes behind that.
        """
        ended = self.ended([*self.exporter, "--check", "--demo"], self.settings())
        self.assertEqual((0, ""), (ended.returncode, ended.stderr), ended)
        upstream, *lines = ended.stdout.splitlines()
        self.assertRegex(upstream, r"^NetBird API: http://127\.0\.0\.1:\d+$")
        self.assertEqual(["connection: direct", "reachable: yes"], lines[:2])
        self.assertEqual(["path", "outcome", "records", "ms"], lines[2].split())
        for path in ("api/peers", "api/groups", "api/instance/version"):
            [row] = [line for line in lines if line.split()[0] == path]
            self.assertRegex(row, rf"^{path} +ok +\d+ +\d+$")
        rows = lines[3 : lines.index("needs attention:")]
        self.assertEqual([], [row for row in rows if not row.startswith("api/")])

    def test_strict(self) -> None:
        """The status says how severe the findings are, or that there is no answer."""
        command = [*self.exporter, "--check", "--strict"]
        ended = self.ended([*command, "--demo"], self.settings())
        worst = 2 if "\ncritical: " in ended.stdout else 1
        self.assertEqual(worst, ended.returncode, ended.stdout)
        dead = {
            "UPSTREAM_API_URL": f"http://127.0.0.1:{free_port()}",
            "UPSTREAM_API_TOKEN": GOOD,
        }
        ended = self.ended(command, self.settings(**dead))
        self.assertEqual(3, ended.returncode, ended.stdout)
        ended = self.ended([*self.exporter, "--strict"], self.settings())
        self.assertIn("--strict requires --check", ended.stderr)
        self.assertEqual(78, ended.returncode)

    def test_once_demo(self) -> None:
        """The metrics are printed as a scrape would get them, in any locale, and
        nothing else.
        """
        given = self.settings(PYTHONIOENCODING="ascii")
        ended = self.ended([*self.exporter, "--once", "--demo"], given)
        self.assertEqual((0, ""), (ended.returncode, ended.stderr), ended)
        self.assertIn('\nnetbird_api_peers{connected="true"} ', ended.stdout)
        self.assertIn("\n# TYPE netbird_api_group_info gauge\n", ended.stdout)
        self.assertIn("日本", ended.stdout)
        for line in ended.stdout.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE|UNIT) )?netbird_api_")

    def test_dead_upstream(self) -> None:
        """Without an answer, both report the error in one line, with status 1."""
        url = f"http://127.0.0.1:{free_port()}"
        given = {"UPSTREAM_API_URL": url, "UPSTREAM_API_TOKEN": GOOD}
        status, out, err = self.report("--check", **given)
        self.assertEqual((1, ""), (status, err))
        told = f"NetBird API: {url}\nconnection: direct\nreachable: no connection"
        self.assertIn(told, out)
        self.assertRegex(out, r"\napi/peers +connect +\d+\n")
        self.assertRegex(
            out, r"\npeers: no connection: .*\. .*Check that the management server runs"
        )
        status, out, err = self.report("--once", **given)
        self.assertEqual((1, ""), (status, out))
        self.assertIn("peers: no connection: ", err)

    def test_dead_upstream_ends_soon(self) -> None:
        """With three attempts, the default, neither tries every path in vain."""
        for flag in ("--check", "--once"):
            begin = time.monotonic()
            status, _, _ = self.report(
                flag,
                UPSTREAM_API_URL=f"http://127.0.0.1:{free_port()}",
                UPSTREAM_API_TOKEN=GOOD,
                API_RETRY_ATTEMPTS="3",
            )
            self.assertEqual(1, status)
            self.assertLess(time.monotonic() - begin, 21.0 + SOON, flag)

    def test_refused_token(self) -> None:
        """A refused token is reported once, with advice."""
        upstream = Upstream(self)
        status, out, _ = self.report(
            "--check", UPSTREAM_API_URL=upstream.url, UPSTREAM_API_TOKEN=GOOD
        )
        self.assertEqual(1, status)
        self.assertIn("\nreachable: yes\n", out)
        self.assertRegex(out, r"\napi/peers +auth +\d+\n")
        self.assertEqual(1, out.count("401: the NetBird API rejects the token. "), out)

    def test_peers_are_what_counts(self) -> None:
        """Other paths may fail: the report names them, and the status stays 0."""
        upstream = Upstream(self, GOOD)
        upstream.faults["/api/groups"] = lambda _: (
            403,
            "application/json",
            b'{"message":"permission denied"}',
        )
        given = {"UPSTREAM_API_URL": upstream.url, "UPSTREAM_API_TOKEN": GOOD}
        status, out, _ = self.report("--check", **given)
        self.assertEqual(0, status, out)
        self.assertRegex(out, r"\napi/groups +forbidden +\d+\n")
        self.assertIn("\ngroups: 403: permission denied. ", out)
        status, out, err = self.report("--once", **given)
        self.assertEqual((0, "groups: 403: permission denied\n"), (status, err))
        self.assertIn("netbird_api_peers", out)
        del upstream.faults["/api/groups"]
        upstream.faults["/api/peers"] = lambda _: (500, "text/plain", b"")
        for flag in ("--check", "--once"):
            self.assertEqual(1, self.report(flag, **given)[0])

    def test_calls(self) -> None:
        """The connection is tested first; then every path is requested once."""
        upstream = Upstream(self, GOOD)
        given = {"UPSTREAM_API_URL": upstream.url, "UPSTREAM_API_TOKEN": GOOD}
        _, out, _ = self.report("--check", **given)
        self.assertEqual(["/api/health", "/api/peers"], upstream.asked[:2])
        self.assertEqual(len(set(upstream.asked)), len(upstream.asked))
        paths = {path.partition("?")[0] for path in upstream.asked}
        told = re.findall(r"^api/\S+ ", out, re.MULTILINE)
        self.assertEqual(1 + len(told), len(paths))

    def test_partial(self) -> None:
        """A person's token with the role `user` sees less, which is reported."""
        upstream = Upstream(self, GOOD)
        for user, expected in (
            ({"role": "user"}, True),
            ({"role": "user", "is_service_user": True}, False),
            ({"role": "auditor"}, False),
        ):
            body = json.dumps([{"id": "u1", "is_current": True, **user}]).encode()
            upstream.faults["/api/users"] = lambda _, body=body: (  # type: ignore[misc]
                200,
                "application/json",
                body,
            )
            status, out, _ = self.report(
                "--check", UPSTREAM_API_URL=upstream.url, UPSTREAM_API_TOKEN=GOOD
            )
            self.assertEqual(0, status, out)
            self.assertEqual(expected, "may be incomplete" in out, out)

    def test_mistyped(self) -> None:
        """A token whose checksum is wrong is named as such by the check, too."""
        upstream = Upstream(self)
        wrong = GOOD[:-1] + "0"
        _, out, err = self.report(
            "--check", UPSTREAM_API_URL=upstream.url, UPSTREAM_API_TOKEN=wrong
        )
        self.assertIn("the checksum of the token is wrong", out + err)

    def test_wrong_settings(self) -> None:
        """Wrong settings have the same error as at a start."""
        for flag in ("--check", "--once"):
            status, out, err = self.report(flag, UPSTREAM_API_TOKEN="a b")
            self.assertEqual((os.EX_CONFIG, ""), (status, out))
            for line in err.splitlines():
                self.assertTrue(line.startswith("api-exporter: UPSTREAM_API_"), line)
            self.assertEqual(2, len(err.splitlines()), err)

    def test_not_for_daemons(self) -> None:
        """The daemon does not know these flags."""
        for flag in ("--check", "--once"):
            ended = self.ended([*self.twistd, flag])
            self.assertEqual(1, ended.returncode)
            self.assertIn(f"{flag} not recognized", ended.stdout + ended.stderr)


class TokenTests(OperatedTestCase):
    def test_rotation(self) -> None:
        """A new token in the file is used at once, without a restart or a failure."""
        old, new = GOOD, "other-token"
        upstream = Upstream(self, old)
        file = self.directory / "token"
        file.write_text(f"{old}\n")
        file.chmod(0o600)
        running = self.started(
            self.exporter,
            self.reading(
                upstream.url,
                UPSTREAM_API_TOKEN_FILE=str(file),
                REFRESH_INTERVALS="peers=1s",
            ),
        )
        replacing = self.directory / "replacing"
        replacing.write_text(f"  {new}\n")
        replacing.chmod(0o600)
        upstream.tokens = {old, new}
        replacing.rename(file)
        # What is on its way has the old token.
        peers = upstream.asked.count("/api/peers")
        until(lambda: upstream.asked.count("/api/peers") > peers + 1, "two refreshes")
        upstream.tokens = {new}
        until(lambda: upstream.asked.count("/api/peers") > peers + 3, "two more")
        self.assertTrue(scraped(self.url(), "netbird_api_up 1.0"))
        self.assertNotIn("warning", running.said())
        # Refused first, replaced later.
        upstream.tokens = {"x"}
        until(lambda: scraped(self.url(), "netbird_api_up 0.0"), "the refusal")
        file.write_text("x")
        until(lambda: scraped(self.url(), "netbird_api_up 1.0"), "the recovery")
        lines = [line.partition(" ")[2] for line in running.said().splitlines()]
        self.assertEqual(
            1, sum("warning cannot refresh peers: 401" in x for x in lines)
        )
        self.assertEqual(
            1, sum("info peers can be refreshed again" in x for x in lines)
        )
        # The old token stays in use, with one warning.
        file.unlink()
        rounds = len(upstream.asked)
        until(lambda: len(upstream.asked) > rounds + 3, "three rounds")
        self.assertTrue(scraped(self.url(), "netbird_api_up 1.0"))
        said = f"the token file cannot be read: {file}: No such file or directory"
        self.assertEqual(1, running.said().count(said), running.said())
        for token in (old, new):
            self.assertNotIn(token, running.said())

    def test_replaced_while_refused(self) -> None:
        """A 401 for a token that has just been replaced is retried, no failure."""
        upstream = Upstream(self, "new")
        file = self.directory / "token"
        file.write_text("old")
        tokens: list[str] = []

        def refuse(authorization: str) -> Answer:
            tokens.append(authorization)
            file.write_text("new")
            del upstream.faults["/api/peers"]
            return 401, "application/json", b'{"message":"token invalid"}'

        upstream.faults["/api/peers"] = refuse
        running = self.started(
            self.exporter,
            self.reading(upstream.url, UPSTREAM_API_TOKEN_FILE=str(file)),
        )
        self.assertEqual(["Bearer old"], tokens)
        until(lambda: scraped(self.url(), "netbird_api_up 1.0"), "the retry")
        self.assertNotIn("cannot refresh", running.said())

    def test_both(self) -> None:
        """A token and a file with a token are one too many."""
        file = self.directory / "token"
        file.write_text(GOOD)
        environ = self.reading(
            "http://127.0.0.1:1",
            UPSTREAM_API_TOKEN=GOOD,
            UPSTREAM_API_TOKEN_FILE=str(file),
        )
        ended = self.ended(self.exporter, environ)
        self.assertEqual(os.EX_CONFIG, ended.returncode)
        self.assertIn("are both set", ended.stderr)

    def test_useless_file(self) -> None:
        """A token file that cannot be used ends the start in one line that says why."""
        empty = self.directory / "empty"
        empty.touch()
        for path, why, status in (
            (self.directory / "missing", "No such file or directory", 1),
            (self.directory, "the file is not a regular file", os.EX_CONFIG),
            (empty, "the file is empty", 1),
        ):
            environ = self.reading(
                "http://127.0.0.1:1", UPSTREAM_API_TOKEN_FILE=str(path)
            )
            for command in (self.exporter, self.twistd):
                ended = self.ended(command, environ)
                self.assertEqual((status, ""), (ended.returncode, ended.stdout))
                [line] = ended.stderr.splitlines()
                self.assertTrue(
                    line.startswith("api-exporter: UPSTREAM_API_TOKEN_FILE: "), line
                )
                self.assertTrue(line.endswith(f"({why})"), line)

    def test_permission(self) -> None:
        """A token file of another user has a one-line error about its permission."""
        setpriv = program("setpriv")
        if os.geteuid() != 0:
            raise SkipTest("missing privilege: to give a file to somebody else")
        file = self.directory / "token"
        file.write_text(GOOD)
        file.chmod(0o600)
        os.chown(file, 65534, 65534)
        ended = self.ended(
            [
                setpriv,
                "--bounding-set",
                "-dac_override,-dac_read_search",
                *self.exporter,
            ],
            self.reading("http://127.0.0.1:1", UPSTREAM_API_TOKEN_FILE=str(file)),
        )
        self.assertEqual((1, ""), (ended.returncode, ended.stdout))
        [line] = ended.stderr.splitlines()
        self.assertTrue(line.endswith("(Permission denied)"), line)

    def test_mistyped(self) -> None:
        """A mistyped NetBird token is named at the start, as a warning."""
        upstream = Upstream(self)
        for token, expected in ((GOOD[:-1] + "0", True), (GOOD, False), ("x", False)):
            environ = self.reading(upstream.url, UPSTREAM_API_TOKEN=token)
            running = self.started(self.exporter, environ, "netbird_api_up 0.0")
            self.assertEqual(
                expected, "the checksum of the token is wrong" in running.said()
            )
            running.stop()


class ConfigurationTests(OperatedTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.file = self.directory / "config"
        self.file.touch(mode=0o600)

    def commands(self) -> list[list[str]]:
        return [
            [*command, "--config", "config"] for command in (self.exporter, self.twistd)
        ]

    def test_loaded(self) -> None:
        """Its settings count, but for those that the environment has, too."""
        upstream = Upstream(self, GOOD)
        self.file.write_text(
            f"# ours\n\nexport UPSTREAM_API_URL='{upstream.url}'\n"
            f'UPSTREAM_API_TOKEN="{GOOD}"\nMETRICS_PATH=/other\n'
            f"LISTEN_ADDRESS=127.0.0.1:{self.port}\n"
        )
        for command in self.commands():
            environ = environment(METRICS_PATH="/metrics")
            running = self.started(command, environ)
            self.assertNotIn("is readable by every user", running.said())
            self.assertEqual(404, get(self.url("/other"))[0])
            self.assertEqual(0, running.stop()[0])

    def test_syntax_error(self) -> None:
        """Each wrong line is reported with file, line and name; the status is 78."""
        self.file.write_text(f"A=1\nUPSTREAM_API_TOKEN={GOOD} # mine\nB\n")
        for command in self.commands():
            ended = self.ended(command)
            self.assertEqual((os.EX_CONFIG, ""), (ended.returncode, ended.stdout))
            first, second = ended.stderr.splitlines()
            start = "api-exporter: config:2: UPSTREAM_API_TOKEN: "
            self.assertTrue(first.startswith(start), first)
            self.assertTrue(second.startswith("api-exporter: config:3: B: "), second)
            self.assertNotIn(GOOD, ended.stderr)
            self.assertEqual(["config"], os.listdir(self.directory))

    def test_missing(self) -> None:
        """A file that is not there is one line."""
        self.file.unlink()
        for command in [
            *self.commands(),
            [*self.exporter, "--check", "--config", "config"],
        ]:
            ended = self.ended(command)
            self.assertEqual((1, ""), (ended.returncode, ended.stdout))
            self.assertEqual(
                "api-exporter: config: No such file or directory\n", ended.stderr
            )

    def test_world_readable(self) -> None:
        """A file that all users can read has a warning only."""
        self.file.write_text("HTTP_TIMEOUT=5s\n")
        self.file.chmod(0o644)
        for command in self.commands():
            running = self.started([*command, "--demo"], self.settings())
            said = "warning config is readable by every user of this machine"
            self.assertEqual(1, running.said().count(said), running.said())
            self.assertEqual(0, running.stop()[0])

    def test_for_libraries(self) -> None:
        """The file may contain variables of libraries, too."""
        both, public = key_and_certificate(self.directory)
        upstream = Upstream(self, GOOD, pem=both)
        environ = self.reading(upstream.url, UPSTREAM_API_TOKEN=GOOD)
        environ.pop("SSL_CERT_FILE", None)
        self.file.write_text(f"SSL_CERT_FILE={public}\n")
        for command in self.commands():
            running = self.started(command, environ)
            self.assertTrue(scraped(self.url(), "netbird_api_up 1.0"))
            self.assertEqual(0, running.stop()[0])


ACTIVATION = """
import os, socket, sys
opened = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.dup2(opened.fileno(), 3)
os.set_inheritable(3, True)
pid = str(os.getpid())
os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="x.socket", LISTEN_PID=pid)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Opens a socket and becomes a program that inherits it, as systemd does."""


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address).close()
    except OSError:
        return False
    return True


class ListenTests(OperatedTestCase):
    def served(self, connection: http.client.HTTPConnection) -> str:
        """The health page, over a connection of any kind."""
        self.addCleanup(connection.close)
        connection.request("GET", "/health")
        answer = connection.getresponse()
        self.assertEqual(200, answer.status)
        return answer.read().decode()

    def listening(self, address: str, *command: str) -> Running:
        """An exporter that listens there."""
        running = start(
            self,
            [*command, *self.exporter, "--demo"],
            self.directory,
            self.settings(LISTEN_ADDRESS=address),
        )
        until(
            lambda: " is at " in running.said() or running.process.poll() is not None,
            "the start",
        )
        self.assertIsNone(running.process.poll(), running.said())
        return running

    def test_two(self) -> None:
        """The exporter listens on both of two addresses, and logs them."""
        other = free_port()
        running = self.listening(f"127.0.0.1:{self.port}, 127.0.0.1:{other}")
        for port in (self.port, other):
            self.served(http.client.HTTPConnection("127.0.0.1", port))
            self.assertIn(f"http://127.0.0.1:{port}/metrics", running.said())
        self.assertEqual(0, running.stop()[0])

    def test_second_in_use(self) -> None:
        """Where the second cannot be had, it ends, and that one is named."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            other = taken.getsockname()[1]
            address = f"127.0.0.1:{self.port},127.0.0.1:{other}"
            ended = self.ended(
                [*self.exporter, "--demo"], self.settings(LISTEN_ADDRESS=address)
            )
        self.assertEqual(1, ended.returncode)
        why = f"LISTEN_ADDRESS: cannot listen on 127.0.0.1:{other}: Address already in"
        self.assertIn(why, ended.stderr)

    def test_unix(self) -> None:
        """Other users cannot connect to a socket unless its mode allows it.

        The socket is removed at the end. One of a killed process is replaced.
        """
        path = self.directory / "exporter.sock"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        path.with_suffix(".sock.lock").symlink_to(str(os.getpid()))
        for sign, option, mode in (
            (signal.SIGTERM, "", 0o660),
            (signal.SIGKILL, ":mode=600", 0o600),
            (signal.SIGTERM, ":mode=666", 0o666),
        ):
            running = self.listening(f"unix:{path}{option}")
            self.assertEqual(mode, stat.S_IMODE(path.stat().st_mode))
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                self.assertIn(b" 200 OK", client.recv(65536))
            self.assertIn(f"unix:{path}", running.said())
            status, _ = running.stop(sign)
            self.assertEqual(sign == signal.SIGTERM, not path.exists())
            self.assertIn(status, (0, -signal.SIGKILL))

    def test_unix_in_use(self) -> None:
        """A socket that another exporter has is named in one line."""
        address = f"unix:{self.directory}/exporter.sock"
        self.listening(address)
        environ = self.settings(LISTEN_ADDRESS=address)
        ended = self.ended([*self.exporter, "--demo"], environ)
        self.assertEqual(1, ended.returncode)
        why = f"LISTEN_ADDRESS: cannot listen on {address}: Address already in use"
        self.assertIn(why, ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)

    def test_unix_file(self) -> None:
        """A file that is no socket is never replaced."""
        path = self.directory / "exporter.sock"
        path.write_text("mine")
        environ = self.settings(LISTEN_ADDRESS=f"unix:{path}")
        ended = self.ended([*self.exporter, "--demo"], environ)
        self.assertEqual((1, "mine"), (ended.returncode, path.read_text()))

    def test_ssl(self) -> None:
        """With a key and a certificate it is reached over TLS."""
        both, public = key_and_certificate(self.directory)
        running = self.listening(
            f"ssl:{self.port}:privateKey={both}:interface=127.0.0.1"
        )
        trusting = ssl.create_default_context(cafile=public)
        self.served(
            http.client.HTTPSConnection("localhost", self.port, context=trusting)
        )
        self.assertEqual(0, get(self.url("/health"))[0])
        self.assertEqual(0, running.stop()[0])

    def test_socket_activation(self) -> None:
        """A socket of systemd is used, with the clients that wait for it."""
        address = ("127.0.0.1", self.port)
        for command in (self.exporter, self.twistd):
            launcher = [str(self.bin / "python"), "-c", ACTIVATION, str(self.port)]
            environ = self.settings(LISTEN_ADDRESS="systemd:domain=INET:index=0")
            running = start(
                self, [*launcher, *command, "--demo"], self.directory, environ
            )
            until(lambda: _accepts(address), "the socket")
            with socket.create_connection(address, timeout=PATIENCE) as early:
                early.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                self.assertIn(b" 200 OK", early.recv(65536))
            self.served(http.client.HTTPConnection(*address))
            self.assertIn("systemd:domain=INET:index=0", running.said())
            self.assertEqual(0, running.stop()[0], running.said())

    def test_not_activated(self) -> None:
        """Without systemd's socket it ends, and says in words that there is none."""
        environ = self.settings(LISTEN_ADDRESS="systemd:domain=INET:index=0")
        ended = self.ended([*self.exporter, "--demo"], environ)
        self.assertEqual(1, ended.returncode)
        self.assertIn("cannot listen on systemd:domain=INET:index=0: ", ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)

    def test_wrong_key(self) -> None:
        """A key that is not there ends it in one line that names it."""
        address = f"ssl:{self.port}:privateKey=/nowhere/key.pem"
        ended = self.ended(
            [*self.exporter, "--demo"], self.settings(LISTEN_ADDRESS=address)
        )
        self.assertEqual(1, ended.returncode)
        self.assertIn(
            f"cannot listen on {address}: No such file or directory", ended.stderr
        )
        self.assertNotIn("Traceback", ended.stderr)


class LogTests(OperatedTestCase):
    def test_json(self) -> None:
        """Every line of a whole life is one object with the stable keys."""
        environ = self.settings(LOG_FORMAT="json", LOG_LEVEL="debug")
        running = self.started([*self.exporter, "--demo"], environ)
        get(self.url("/health"))
        self.assertEqual(0, running.stop()[0])
        events = [json.loads(line) for line in running.said().splitlines()]
        for event in events:
            self.assertLessEqual(
                {"time", "level", "logger", "message"}, set(event), event
            )
            self.assertLessEqual(
                set(event),
                {"time", "level", "logger", "message", "fields", "traceback"},
            )
            self.assertNotIn("traceback", event)
        [asked] = [
            event["fields"]
            for event in events
            if event["message"] == "requested api/peers"
        ]
        self.assertEqual(
            ("api/peers", 1, 200),
            tuple(asked[k] for k in ("path", "attempt", "status")),
        )
        for name in ("bytes", "milliseconds"):
            self.assertIsInstance(asked[name], int)
        self.assertIn("GET /health", [event["message"] for event in events])
        [read] = [e["fields"] for e in events if e["message"] == "refreshed peers"]
        self.assertEqual("peers", read["resource"])

    def has_said(self, running: Running, expected: str) -> bool:
        return re.search(expected, running.said()) is not None

    def test_debug(self) -> None:
        """Each attempt, each refresh and each request is explained in a line."""
        environ = self.settings(LOG_LEVEL="debug")
        running = self.started([*self.exporter, "--demo"], environ)
        until(lambda: "refreshed peers" in running.said(), "the peers")
        for expected in (
            r"debug requested api/peers attempt=1 status=200 bytes=\d+ millis",
            r"debug refreshed peers records=\d+ rejected=0 milliseconds=\d+",
            r"debug GET /metrics status=200 client=127\.0\.0\.1 bytes=\d+",
        ):
            until(partial(self.has_said, running, expected), expected)
        for line in running.said().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+Z (debug|info|warning) ")

    def test_quiet(self) -> None:
        """By default a scrape and a good refresh leave no line, a failure just one."""
        upstream = Upstream(self, GOOD)
        running = self.started(
            self.exporter,
            self.reading(
                upstream.url, UPSTREAM_API_TOKEN=GOOD, REFRESH_INTERVALS="peers=1s"
            ),
        )
        upstream.faults["/api/peers"] = lambda _: (500, "text/plain", b"")
        asked = upstream.asked.count("/api/peers")
        until(lambda: upstream.asked.count("/api/peers") > asked + 3, "three failures")
        del upstream.faults["/api/peers"]
        until(lambda: scraped(self.url(), "netbird_api_up 1.0"), "the recovery")
        self.assertEqual(0, running.stop()[0])
        told = [line.partition(" ")[2] for line in running.said().splitlines()]
        self.assertEqual(5, len(told), told)
        self.assertEqual("warning cannot refresh peers: 500 reason=http_5xx", told[2])
        self.assertIn("info peers can be refreshed again after ", told[3])


class TelemetryTests(OperatedTestCase):
    def test_threads_in_use(self) -> None:
        """Threads that are at work are counted while they are."""
        code = (
            "import sys, time\n"
            "from twisted.internet import reactor\n"
            "reactor.callWhenRunning(reactor.callInThread, time.sleep, 60)\n"
            "sys.argv[:] = ['api-exporter', '--demo']\n"
            "from api_exporter.cli import main\n"
            "main()\n"
        )
        running = start(
            self,
            [str(self.bin / "python"), "-c", code],
            self.directory,
            self.settings(),
        )
        until(
            lambda: scraped(self.url(), ALL_READ) or running.process.poll() is not None,
            "the first round",
        )
        until(
            lambda: scraped(self.url(), "\napi_exporter_reactor_threads_in_use 1.0\n"),
            "a thread at work",
        )

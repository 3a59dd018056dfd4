"""A running exporter, the upstream that it reads, and tests of both."""

import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import TestCase as UnitTestCase

from twisted.trial.unittest import TestCase

from simulation.company.network import SimulatedNetwork
from tests.authority import Authority
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
    serve,
    start,
    until,
)

GOOD = "nbp_0operator0operator0operator0op1yFJMy"
"""A token with a right checksum."""

Answer = tuple[int, str, bytes]
"""Status, content type and body."""


def says(status: int, body: bytes, media: str = "application/json") -> Answer:
    return status, media, body


class Upstream(ThreadingHTTPServer):
    """The simulated network behind a real server, which refuses other tokens.

    Args:
        pem: a file with key and certificate for TLS.

    Attributes:
        `asked`: the requested paths with their Authorization headers.
    """

    daemon_threads = True

    def __init__(
        self,
        test: UnitTestCase,
        token: str = GOOD,
        *,
        pem: Path | None = None,
        peers: int = 20,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self._scheme = "http"
        if pem is not None:
            self._scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            # The handshake is left to the thread of the connection.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.asked: list[tuple[str, str]] = []
        self._token = token
        self._network = SimulatedNetwork(peers)
        serve(test, self)

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.server_address[1]}"

    def answer(self, path: str, authorization: str) -> Answer:
        self.asked.append((path, authorization))
        body = self._network.body(path, time.time())
        if body is None:
            return says(404, b"404 page not found\n", "text/plain; charset=utf-8")
        if authorization.removeprefix("Bearer ") != self._token:
            return says(401, b'{"message":"token invalid","code":401}\n')
        return says(200, b"".join(body))

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


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
        """Log nothing."""


def key_and_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a key with a certificate for `localhost`, and its authority's alone."""
    authority = Authority("an authority")
    issued = authority.issue("localhost")
    both, public = directory / "both.pem", directory / "public.pem"
    both.write_bytes(issued.pem + issued.key)
    public.write_bytes(authority.pem)
    return both, public


class ExporterTestCase(TestCase):
    """A directory and a port for an exporter, and the ways to start it."""

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()  # its name is short enough for a socket
        self.addCleanup(made.cleanup)
        self.directory = Path(made.name)
        self.port = free_port()
        self.exporter = [program("api-exporter")]
        twistd = "from twisted.scripts.twistd import run; run()"
        self.daemon = [sys.executable, "-c", twistd, "api-exporter"]
        self.twistd = [*self.daemon[:-1], "-n", "api-exporter"]

    def url(self, path: str = "/metrics") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def page(self, path: str = "/metrics") -> str:
        return get(self.url(path))[2].decode()

    def sample(self, series: str) -> float:
        """Return the value of a series; NaN if there is none."""
        for line in self.page().splitlines():
            if line.startswith(f"{series} "):
                return float(line.rpartition(" ")[2])
        return float("nan")

    def settings(self, **others: str) -> dict[str, str]:
        """Return the environment of an exporter that serves on our port."""
        return environment(
            **{
                "LISTEN_ADDRESS": f"127.0.0.1:{self.port}",
                "DEMO_PEERS": "50",
                "API_RETRY_ATTEMPTS": "1",
                **others,
            }
        )

    def reading(self, upstream: str, **others: str) -> dict[str, str]:
        """Return the environment of an exporter that reads an upstream."""
        return self.settings(UPSTREAM_API_URL=upstream, **others)

    def started(
        self,
        command: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        sign: str = ALL_READ,
        path: str = "/metrics",
    ) -> Running:
        """Start an exporter, by default of the demo; wait for a sign on a page."""
        running = start(
            self,
            command or [*self.exporter, "--demo"],
            self.directory,
            self.settings() if environ is None else environ,
        )

        def ready() -> bool:
            return scraped(self.url(path), sign) or running.process.poll() is not None

        until(ready, sign or path)
        self.assertIsNone(running.process.poll(), running.said())
        return running

    def ended(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that ends by itself."""
        return subprocess.run(
            command,
            cwd=self.directory,
            env=environment() if environ is None else environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def assert_stops(self, running: Running) -> None:
        """Fail unless SIGTERM ends it soon, with status 0."""
        status, seconds = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertLess(seconds, SOON)
        self.assertNotIn("Traceback", running.said())

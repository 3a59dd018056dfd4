"""Probes of NetBird's own servers by `deploy/monitoring`."""

import re
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, new_folder, run
from tests.deploy.prometheus import Prometheus
from tests.integration.programs import (
    becomes,
    free_port,
    get,
    program,
    serve,
    start,
    until,
)

FILES = DEPLOY / "monitoring"

PARTS = ("dashboard", "management", "signal", "relay")

HTML = (200, "text/html", "<title>NetBird</title>")

HEALTHY = {
    "GET /": HTML,
    "GET /api/instance": (200, "application/json", '{"setup_required":false}\n'),
    "POST /signalexchange.SignalExchange/Probe": (200, "application/grpc", ""),
    "GET /relay": (426, "text/plain", "WebSocket protocol violation"),
}
"""The responses of NetBird 0.77's servers, by request."""

REQUESTS = dict(zip(PARTS, HEALTHY, strict=True))


class StandIn(ThreadingHTTPServer):
    """NetBird's four servers behind one address, with changeable responses."""

    def __init__(self, answers: Mapping[str, tuple[int, str, str]]) -> None:
        self.answers = dict(answers)
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        asked = f"{self.command} {self.path}"
        # The dashboard's server sends its page for any unknown path.
        status, media_type, text = self.server.answers.get(asked, HTML)
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET  # noqa: N815 - its own name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own
        del format, args


class StunTests(SynchronousTestCase):
    def told(self, answer: bytes | None) -> str:
        """Return the script's output if a server's response begins with these bytes."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))

            def serve() -> None:
                asked, client = server.recvfrom(1500)
                if answer is not None:
                    server.sendto(answer + asked[4:], client)

            thread = threading.Thread(target=serve)
            thread.start()
            port = server.getsockname()[1]
            said = run(FILES / "stun.py", "127.0.0.1", f"{port}")
            thread.join()
        return said.splitlines()[-1]

    def test_stun(self) -> None:
        """Only a successful response means up; silence and anything else mean down."""
        for answer, up in ((b"\1\1\0\0", 1), (b"\1\x11\0\0", 0), (None, 0)):
            self.assertEqual(f"netbird_stun_up {up}", self.told(answer))


class ProbeTests(SynchronousTestCase):
    """A blackbox_exporter and a Prometheus by the page, with short intervals."""

    def setUp(self) -> None:
        self.server = StandIn(HEALTHY)
        serve(self, self.server)
        directory, blackbox = new_folder(self), f"127.0.0.1:{free_port()}"
        command = [program("prometheus-blackbox-exporter")]
        command.append(f"--config.file={FILES / 'blackbox.yml'}")
        start(self, [*command, f"--web.listen-address={blackbox}"], directory)
        until(lambda: get(f"http://{blackbox}/-/healthy")[0] == 200, "blackbox")
        rules = directory / "rules.yml"
        text = (FILES / "rules.yml").read_text()
        rules.write_text(re.sub(r"for: \w+", "for: 0s", text))
        jobs = (FILES / "prometheus.yml").read_text()
        jobs = jobs.replace("localhost:9115", blackbox)
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.prometheus = Prometheus(
            self,
            "global:\n"
            "  {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{rules}]\n"
            + jobs.replace("https://netbird.example.com", address),
        )

    def down(self) -> set[str]:
        """Return the parts with an alert."""
        return {
            alert["labels"]["job"].removeprefix("netbird-")
            for alert in self.prometheus.alerts()
            if alert["labels"]["alertname"] == "NetBirdServerDown"
        }

    def asked(self) -> dict[str, Any]:
        """Return the result of each part's probe."""
        return {
            sample["metric"]["job"].removeprefix("netbird-"): sample["value"][1]
            for sample in self.prometheus.samples("probe_success")
        }

    def test_parts(self) -> None:
        """Each failing part has its own alert, also if the dashboard answers for it."""
        becomes(dict.fromkeys(PARTS, "1"), self.asked)
        becomes(set(), self.down)
        for part in PARTS:
            failing = {REQUESTS[part]: (502, "text/html", "Bad Gateway")}
            self.server.answers = {**HEALTHY, **failing}
            becomes({part}, self.down)
        self.server.answers.clear()
        becomes(set(PARTS) - {"dashboard"}, self.down)

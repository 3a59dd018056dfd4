"""The TLS server under sslyze and under many handshakes."""

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acceptance.check import Failed, listens, pip_tool, running, until
from tests.authority import Authority
from tests.integration.programs import environment, free_port

HANDSHAKES = 10_000

WEB = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"

PROFILE = "intermediate"
"""The Mozilla profile for servers that also support clients older than the newest."""

WEAKNESSES = (
    ("heartbleed", "is_vulnerable_to_heartbleed"),
    ("openssl_ccs_injection", "is_vulnerable_to_ccs_injection"),
    ("tls_compression", "supports_compression"),
    ("session_renegotiation", "is_vulnerable_to_client_renegotiation_dos"),
    ("tls_1_3_early_data", "supports_early_data"),
)
"""The names of sslyze's tests, each with the result that reports the weakness."""


def sslyze(folder: Path) -> str:
    """Check that sslyze finds no weakness and nothing outside Mozilla's profile."""
    tool = pip_tool("sslyze", "sslyze")
    with _run_demo(folder) as (port, _):
        report = folder / "report.json"
        said = subprocess.run(
            [
                tool,
                f"--mozilla_config={PROFILE}",
                *("--heartbleed", "--openssl_ccs", "--compression"),
                *("--reneg", "--early_data"),
                f"--json_out={report}",
                f"localhost:{port}",
            ],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        ).stdout
    _, _, judged = said.partition("COMPLIANCE")
    objections = dict(re.findall(r"^ +\* (\w+): (.*)$", judged, re.MULTILINE))
    objections.pop("certificate_path_validation", None)  # the authority is our own
    if objections or not report.exists():
        raise Failed(judged or said)
    [scanned] = json.loads(report.read_text())["server_scan_results"]
    tried: list[str] = []
    weak: list[str] = []
    for name, key in WEAKNESSES:
        found = scanned["scan_result"][name]["result"]
        if found is not None:
            (weak if found[key] else tried).append(name)
    if weak or not tried:
        raise Failed(f"weak: {weak}")
    return f"all that Mozilla's {PROFILE} profile asks for; none of {', '.join(tried)}"


def handshakes(folder: Path) -> str:
    """Check that 10,000 handshakes, half of them aborted, leak nothing."""
    with _run_demo(folder) as (port, process):
        trusting = ssl.create_default_context(cafile=folder / "ca.pem")
        _handshake(trusting, port, 500)
        time.sleep(2)
        files, memory = _usage(process.pid)
        begin = time.monotonic()
        _handshake(trusting, port, HANDSHAKES)
        took = time.monotonic() - begin
        time.sleep(2)
        after, kilobytes = _usage(process.pid)
        more, larger = after - files, kilobytes - memory
    if more > 2 or larger > 16 * 1024:
        raise Failed(f"{more} descriptors and {larger} kB more")
    return (
        f"{HANDSHAKES} in {took:.0f} s: {more} descriptors and {larger} kB more than"
        " before"
    )


def _handshake(trusting: ssl.SSLContext, port: int, count: int) -> None:
    for number in range(count):
        with socket.create_connection(("127.0.0.1", port), 30) as client:
            if number % 2:
                client.sendall(b"\x16\x03\x01\x02\x00" + bytes(100))
                continue
            with trusting.wrap_socket(client, server_hostname="localhost") as secured:
                secured.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                if not secured.recv(100).startswith(b"HTTP/1.1 200"):
                    raise Failed("/health does not answer")


def _usage(pid: int) -> tuple[int, int]:
    """Return the descriptors and the resident kilobytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return len(os.listdir(f"/proc/{pid}/fd")), int(found[1])


@contextmanager
def _run_demo(folder: Path) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Run a demo behind TLS. Yield its port and its process."""
    authority = Authority()
    authority.server().write(folder, "server")
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "web.yml").write_text(WEB)
    port = free_port()
    settings = environment(
        WEB_CONFIG_FILE=str(folder / "web.yml"),
        LISTEN_ADDRESS=f"127.0.0.1:{port}",
        DEMO_PEERS="10",
    )
    demo = (sys.executable, "-m", "api_exporter", "--demo")
    log = folder / "log"
    with running(*demo, log=log, env=settings) as process:
        until(lambda: listens(port), log.read_text)
        yield port, process

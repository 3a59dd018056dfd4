"""The memory that slow readers use, each of which holds an old page.

`python -m benchmarks.readers [--peers N] [--readers N] [--form plain|gzip]`: all peers
differ at each refresh. A quarter of the readers begins after each refresh. Each reads a
few bytes a second until the exporter aborts its connection.
"""

import argparse
import socket
import time
from pathlib import Path

from api_exporter.serving.channel import MAX_RESPONSE_SECONDS
from benchmarks import servers
from benchmarks.client import Client, wait
from benchmarks.processes import Program

INTERVAL = 30.0
"""Seconds between two refreshes: the default interval of the peers."""

OLD_PAGES = int(MAX_RESPONSE_SECONDS / INTERVAL)
"""The number of old pages that the readers hold."""

SETTINGS = {
    "REFRESH_INTERVALS": servers.ONCE.replace("peers=24h", f"peers={INTERVAL:.0f}s")
}


class SlowReaders:
    """Slow readers of one page."""

    def __init__(self, port: int, form: str) -> None:
        coding = "gzip" if form == "gzip" else "identity"
        lines = ["GET /metrics HTTP/1.1", "Host: x", f"Accept-Encoding: {coding}"]
        self._request = "\r\n".join([*lines, "", ""]).encode()
        self._port = port
        self.clients: list[socket.socket] = []

    def grow(self, count: int) -> None:
        for _ in range(count):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", self._port))
            client.sendall(self._request)
            client.setblocking(False)
            self.clients.append(client)

    def read(self) -> None:
        """Read a few bytes on each connection. Forget aborted ones."""
        for client in list(self.clients):
            try:
                received = client.recv(256)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                received = b""
            if not received:
                client.close()
                self.clients.remove(client)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers")
    parser.add_argument("--peers", type=int, default=100_000)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--form", choices=("plain", "gzip"), default="plain")
    options = parser.parse_args()
    with (
        servers.upstream_and_folder(options.peers, "everything") as (upstream, folder),
        servers.daemon(upstream, folder, **SETTINGS) as program,
    ):
        wait(program, "/ready")
        time.sleep(INTERVAL)  # Other resources are read meanwhile.
        client = Client(program.port)
        for coding in ("identity", "gzip"):
            _, length = client.time("/metrics", f"Accept-Encoding: {coding}")
            print(f"page, {coding}: {length / 2**20:.0f} MiB", flush=True)
        client.close()
        crowd, ticks = SlowReaders(program.port, options.form), Client(upstream)
        step = options.readers // OLD_PAGES
        report("before", program, crowd, ticks, grow=0, refreshes=2)
        report("during", program, crowd, ticks, grow=step, refreshes=6)
        report("end", program, crowd, ticks, grow=0, refreshes=OLD_PAGES + 1)
        report("after", program, crowd, ticks, grow=0, refreshes=1)


def report(
    phase: str,
    program: Program,
    crowd: SlowReaders,
    upstream: Client,
    *,
    grow: int,
    refreshes: int,
) -> None:
    """Print the memory of a phase, in which `grow` readers begin at each refresh."""
    Path(f"/proc/{program.process.pid}/clear_refs").write_text("5")  # Reset the peak.
    readers = 0
    for _ in range(refreshes):
        upstream.get("/tick")
        crowd.grow(grow)
        end = time.monotonic() + INTERVAL
        while time.monotonic() < end:
            program.check()
            crowd.read()
            readers = max(readers, len(crowd.clients))
            time.sleep(1)
    print(
        f"{phase:6} at most {readers:4} readers, peak {program.memory('VmHWM'):5.0f}"
        f" MiB; then {len(crowd.clients):4}, {program.memory('VmRSS'):5.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    main()

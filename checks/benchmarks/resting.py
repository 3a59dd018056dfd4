"""The cost of an idle daemon, and the time of its start.

`python -m checks.benchmarks.resting [ANOTHER TREE]` runs with 100 peers and measures
another tree alternately. It compares them with `twistd web` and a bare Twisted site
with TLS.
"""

import argparse
import operator
import socket
import ssl
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from checks.benchmarks import servers, starting
from checks.benchmarks.client import MAX_WAIT, Client, wait
from checks.benchmarks.processes import ROOT, Program, module, other_tree, running
from tests.authority import Authority
from tests.integration.programs import free_port

PEERS = 100

CA_BUNDLES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
)
"""The paths of the distributions' bundles of certificate authorities."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=other_tree)
    options = parser.parse_args()
    trees = {"this": ROOT} | ({"other": options.other} if options.other else {})
    with servers.upstream_and_folder(PEERS) as (upstream, folder):
        each = InTurns(trees, upstream, folder)
        for line in chain(each.starts(15), each.memory(5), each.rest(minutes=2)):
            print(line, flush=True)


class InTurns:
    """All trees, measured alternately."""

    def __init__(
        self, trees: Mapping[str, Path], upstream: int, directory: Path
    ) -> None:
        self._trees = trees
        self._upstream = upstream
        self._directory = directory

    def starts(self, pairs: int) -> Iterator[str]:
        """Yield each tree's time to a response, as a multiple of `twistd web`."""
        bare: list[float] = []
        seen: dict[str, list[float]] = {name: [] for name in self._trees}
        for turn in range(pairs + 1):
            seconds = starting.start_web(self._directory)
            taken = {name: self._start(name) for name in self._trees}
            if turn:  # The first one compiles.
                bare.append(seconds)
                for name, its in taken.items():
                    seen[name].append(its)
        yield f"start, twistd web: {statistics.median(bare) * 1e3:.0f} ms"
        for name, found in seen.items():
            ratio = statistics.median(s / b for s, b in zip(found, bare, strict=True))
            yield (
                f"start, {name}: {statistics.median(found) * 1e3:.0f} ms,"
                f" {ratio:.2f} × twistd web"
            )

    def _start(self, name: str) -> float:
        settings = self._settings(name)
        with servers.daemon(self._upstream, self._directory, **settings) as program:
            return wait(program, "/health")

    def memory(self, starts: int) -> Iterator[str]:
        """Yield the resident and the unshared memory after two scrapes. The simulated
        API uses TLS. Its authority is trusted in addition to the system's.
        """
        bare = "a bare site with TLS"
        seen: dict[str, list[tuple[float, float]]] = {bare: []}
        authority = Authority("a test")
        issued = authority.issue("localhost")
        pem, trusted = self._directory / "pem", self._directory / "trusted"
        pem.write_bytes(issued.key + issued.pem)
        usual = Path(ssl.get_default_verify_paths().openssl_cafile)
        known = (path for path in (usual, *CA_BUNDLES) if path.is_file())
        trusted.write_bytes(next(known).read_bytes() + authority.pem)
        pages = self._directory / "pages"
        pages.mkdir()
        (pages / "plain").write_bytes(b"well\n")
        upstream = free_port()
        secured = {
            "UPSTREAM_API_URL": f"https://localhost:{upstream}",
            "SSL_CERT_FILE": str(trusted),
        }
        command = module("checks.benchmarks.upstream", upstream, PEERS, pem)
        with running(command, self._directory, port=upstream) as api:
            _shake_hands(api)
            for _ in range(starts):
                port = free_port()
                command = module("checks.benchmarks.static", port, pages, pem)
                with running(
                    command, self._directory, servers.MALLOC, port=port
                ) as site:
                    _shake_hands(site)
                    seen[bare].append(site.memory_now())
                for name in self._trees:
                    with ExitStack() as stack:
                        ours = self._daemon(stack, name, **secured)
                        client = Client(ours.port)
                        for encoding in ("identity", "gzip"):
                            client.get("/metrics", f"Accept-Encoding: {encoding}")
                        seen.setdefault(name, []).append(ours.memory_now())
        middle = {
            name: [statistics.median(column) for column in zip(*found, strict=True)]
            for name, found in seen.items()
        }
        for name, sizes in middle.items():
            whole, own = sizes
            above, own_above = map(operator.sub, sizes, middle[bare])
            yield (
                f"memory, {name}: {whole:.1f} MiB (+ {above:.1f}) resident,"
                f" {own:.1f} MiB (+ {own_above:.1f}) its own"
            )

    def rest(self, minutes: float) -> Iterator[str]:
        """Yield processor time a minute, with default intervals and without refresh."""
        with ExitStack() as stack:
            running = {
                (name, what): self._daemon(stack, name, **settings)
                for name in self._trees
                for what, settings in (
                    ("refreshing", {}),
                    ("alone", {"REFRESH_INTERVALS": servers.ONCE}),
                )
            }
            time.sleep(5)
            before = {k: (p.cpu, p.wakes) for k, p in running.items()}
            time.sleep(minutes * 60)
            for (name, what), program in running.items():
                cpu, wakes = before[name, what]
                yield (
                    f"rest, {name}, {what}:"
                    f" {(program.cpu - cpu) * 1e3 / minutes:.1f} ms a minute,"
                    f" awake {(program.wakes - wakes) / minutes:.0f} times"
                )

    def _daemon(self, stack: ExitStack, name: str, **settings: str) -> Program:
        """Return a daemon that has read everything."""
        settings = self._settings(name) | settings
        program = stack.enter_context(
            servers.daemon(self._upstream, self._directory, **settings)
        )
        wait(program, "/health")
        client = Client(program.port)
        starting.wait_for_all(program, client)
        client.close()
        return program

    def _settings(self, name: str) -> dict[str, str]:
        return {"PYTHONPATH": str(self._trees[name])}


def _shake_hands(program: Program) -> None:
    """Wait until it listens, and make two TLS handshakes."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    end, greeted = time.monotonic() + MAX_WAIT, 0
    while greeted < 2:
        program.check()
        try:
            with (
                socket.create_connection(("127.0.0.1", program.port), 60) as plain,
                context.wrap_socket(plain) as secured,
            ):
                secured.sendall(b"GET /plain HTTP/1.0\r\n\r\n")
                secured.recv(4096)
                greeted += 1
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    main()

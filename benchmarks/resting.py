"""What the daemon costs while nothing changes, and how soon it is there.

`python -m benchmarks.resting [ANOTHER TREE]`, with 100 peers; another tree of ours is
measured in the same run, in turns. Beside them stand `twistd web` and a bare Twisted
site with TLS.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks import servers, starting
from benchmarks.client import Client, wait
from benchmarks.processes import ROOT, Program, free_port, module, running
from tests.authority import Authority

PEERS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path)
    parser.add_argument("--pairs", type=int, default=15, help="of starts")
    parser.add_argument("--starts", type=int, default=5, help="to look at memory")
    parser.add_argument("--minutes", type=float, default=2, help="at rest")
    options = parser.parse_args()
    trees = {"this": ROOT} | ({"other": options.other} if options.other else {})
    with (
        tempfile.TemporaryDirectory(prefix="api-exporter-bench-") as name,
        servers.upstream(PEERS, Path(name)) as upstream,
    ):
        each = Each(trees, upstream, Path(name))
        for lines in (
            each.starts(options.pairs),
            each.memory(options.starts),
            each.rest(options.minutes),
        ):
            for line in lines:
                print(line, flush=True)


class Each:
    """Every tree, in turns."""

    def __init__(
        self, trees: Mapping[str, Path], upstream: int, directory: Path
    ) -> None:
        self._trees = trees
        self._upstream = upstream
        self._directory = directory

    def starts(self, pairs: int) -> Iterator[str]:
        """How long each takes to its first answer, as multiples of `twistd web`."""
        bare: list[float] = []
        seen: dict[str, list[float]] = {name: [] for name in self._trees}
        for turn in range(pairs + 1):
            seconds = starting.bare(self._directory)
            taken = {name: self._start(name) for name in self._trees}
            if turn:  # the first one compiles
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
        port = free_port()
        with servers.daemon(
            self._upstream, self._directory, port, **self._settings(name)
        ) as program:
            return wait(program, port, "/health")

    def memory(self, starts: int) -> Iterator[str]:
        """What is resident, and what of it is nobody else's, after one scrape."""
        seen: dict[str, list[tuple[float, float]]] = {
            name: [] for name in ("a bare site with TLS", *self._trees)
        }
        pem = self._directory / "pem"
        issued = Authority("a test").issue("localhost")
        pem.write_bytes(issued.key + issued.pem)
        pages = self._directory / "pages"
        pages.mkdir()
        (pages / "plain").write_bytes(b"well\n")
        for _ in range(starts):
            port = free_port()
            command = module("benchmarks.static", port, pages, pem)
            with running(
                command, self._directory, {"MALLOC_ARENA_MAX": "2"}
            ) as program:
                time.sleep(2)
                seen["a bare site with TLS"].append(program.memory_now())
            for name in self._trees:
                with ExitStack() as stack:
                    program, port = self._daemon(stack, name)
                    Client(port).get("/metrics")
                    time.sleep(1)
                    seen[name].append(program.memory_now())
        least: list[float] = []
        for name, found in seen.items():
            middle = [statistics.median(column) for column in zip(*found, strict=True)]
            least = least or middle
            (whole, own), (bare, bare_own) = middle, least
            yield (
                f"memory, {name}: {whole:.1f} MiB (+ {whole - bare:.1f}) resident,"
                f" {own:.1f} MiB (+ {own - bare_own:.1f}) its own"
            )

    def rest(self, minutes: float) -> Iterator[str]:
        """Processor time a minute, with the usual refreshes and without any."""
        with ExitStack() as stack:
            running = {
                (name, what): self._daemon(stack, name, **settings)[0]
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

    def _daemon(
        self, stack: ExitStack, name: str, **settings: str
    ) -> tuple[Program, int]:
        """One that has read everything, and its port."""
        port = free_port()
        settings = self._settings(name) | settings
        program = stack.enter_context(
            servers.daemon(self._upstream, self._directory, port, **settings)
        )
        wait(program, port, "/health")
        client = Client(port)
        while not starting.everything_read(client):
            program.check()
            time.sleep(0.1)
        client.close()
        return program, port

    def _settings(self, name: str) -> dict[str, str]:
        return {"PYTHONPATH": str(self._trees[name])}


if __name__ == "__main__":
    main()

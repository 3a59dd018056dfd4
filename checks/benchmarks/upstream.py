"""An API in a process: `python -m checks.benchmarks.upstream PORT PEERS [PEM]`.

Its clock stands still until a request of `/tick`, so bodies stay the same until then.
`KIND` of the environment, one of KINDS, is the kind of change at a tick. Bodies are
encoded in advance, because NetBird, too, has a whole body in memory before it sends the
first chunk.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.server import DEMO_TOKEN
from checks.benchmarks.static import listen
from simulation.company.network import PATHS, PEERS, SimulatedNetwork

START = 1_800_000_000.0
TICK = 600.0
"""Seconds of a tick: enough for peers to connect and disconnect."""


Revise = Callable[[int, dict[str, object]], None]
"""A function that changes a record, given its index in the list."""


class Prepared(SimulatedNetwork):
    """A network whose bodies are encoded once for each instant."""

    def __init__(self, peers: int) -> None:
        super().__init__(peers)
        self._ready: dict[str, list[bytes]] = {}

    def prepare(self, at: float) -> None:
        self._ready = {
            path: list(super(Prepared, self).body(path, at) or ()) for path in PATHS
        }

    def body(self, path: str, at: float) -> Iterator[bytes] | None:  # noqa: ARG002 - prepared for an instant
        pieces = self._ready.get(path.partition("?")[0])
        return None if pieces is None else iter(pieces)

    def revise(self, path: str, change: Revise) -> None:
        """Change the records of a list."""
        records = json.loads(b"".join(self._ready[path]))
        for place, record in enumerate(records):
            change(place, record)
        self._ready[path] = [json.dumps(records, separators=(",", ":")).encode()]


Tick = Callable[[Prepared, int], None]
"""The change of the network at a tick, given the tick's number."""


def passing(network: Prepared, ticks: int) -> None:
    """Advance ten minutes: 4 % of the peers change, and the sizes of all groups."""
    network.prepare(START + ticks * TICK)


def coming_and_going(every: int) -> Tick:
    """Return a tick that changes one in `every` peers, but no group."""

    def tick(network: Prepared, ticks: int) -> None:
        def switch(place: int, peer: dict[str, object]) -> None:
            if place % every == ticks % every:
                peer["connected"] = not peer["connected"]
                peer["last_seen"] = f"2026-01-01T00:00:{ticks % 60:02}Z"

        network.revise(PEERS, switch)

    return tick


def clock(network: Prepared, ticks: int) -> None:
    """Set `last_seen` of all connected peers to now."""

    def change(_: int, peer: dict[str, object]) -> None:
        if peer["connected"]:
            peer["last_seen"] = f"2026-01-01T00:00:{ticks % 60:02}Z"

    network.revise(PEERS, change)


def names(network: Prepared, ticks: int) -> None:
    """Rename all peers."""

    def change(place: int, peer: dict[str, object]) -> None:
        peer["name"] = f"peer-{place}-{ticks}"

    network.revise(PEERS, change)


KINDS: Mapping[str, Tick] = {
    "passing": passing,
    "few": coming_and_going(100),
    "clock": clock,
    "names": names,
}


class TickingApi(Resource):
    """The API, with the additional path `/tick`."""

    isLeaf = True

    def __init__(self, peers: int, kind: str) -> None:
        super().__init__()
        self._ticks = 0
        self._tick = KINDS[kind]
        self._network = Prepared(peers)
        self._network.prepare(START)
        self._api = DemoApi(
            {DEMO_TOKEN: self._network}, now=lambda: START, fault="none"
        )

    def render(self, request: Request) -> bytes | int:
        if request.path == b"/tick":
            self._ticks += 1
            self._tick(self._network, self._ticks)
            return b"ticked"
        answer: bytes | int = self._api.render(request)
        return answer


def main() -> None:
    port, peers, *pem = sys.argv[1:]
    kind = os.environ.get("KIND", "passing")
    listen(Site(TickingApi(int(peers), kind)), int(port), *pem)
    reactor.run()


if __name__ == "__main__":
    main()

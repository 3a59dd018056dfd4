"""The simulated upstream, a process: `python -m benchmarks.upstream PORT PEERS [PEM]`.

Its clock stands still until somebody asks for `/tick`: every body stays the same until
then. Bodies are encoded before they are asked for, because the real upstream, too, has
all of a body in memory before it sends the first chunk of it.
"""

import sys
from collections.abc import Iterator

from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.network import PATHS, Network
from api_exporter.demo.server import TOKEN
from benchmarks.listening import listen

START = 1_800_000_000.0
TICK = 600.0
"""Seconds that pass at once: enough for peers to come and go."""


class Prepared(Network):
    """A network whose bodies are encoded once an instant."""

    def __init__(self, peers: int) -> None:
        super().__init__(peers)
        self._ready: dict[str, list[bytes]] = {}

    def prepare(self, at: float) -> None:
        """Encode all bodies of an instant."""
        self._ready = {
            path: list(super(Prepared, self).body(path, at) or ()) for path in PATHS
        }

    def body(self, path: str, at: float) -> Iterator[bytes] | None:  # noqa: ARG002 - prepared for an instant
        pieces = self._ready.get(path)
        return None if pieces is None else iter(pieces)


class Ticking(Resource):
    """The API, and beside it the path that lets time pass."""

    isLeaf = True

    def __init__(self, peers: int) -> None:
        super().__init__()
        self._at = START
        self._network = Prepared(peers)
        self._network.prepare(self._at)
        self._api = DemoApi(network=self._network, token=TOKEN, now=lambda: self._at)

    def render(self, request: Request) -> bytes | int:
        if request.path == b"/tick":
            self._at += TICK
            self._network.prepare(self._at)
            return b"ticked"
        answer: bytes | int = self._api.render(request)
        return answer


def main() -> None:
    port, peers, *pem = sys.argv[1:]
    listen(Site(Ticking(int(peers))), int(port), *pem)
    reactor.run()


if __name__ == "__main__":
    main()

"""An API of many accounts: `python -m checks.benchmarks.customers PORT PEERS`.

Every token opens a network of this size; each request changes one in a hundred peers.
`PEM` of the environment turns TLS on. With `BIG=PEERS`, the token `nbp_big` opens a
network of that size.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator

from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from api_exporter.serving.sender import Sender
from checks.benchmarks.static import listen
from simulation.company.network import PATHS, PEERS, SimulatedNetwork

START = 1_800_000_000.0
BIG = "Bearer nbp_big"


def variants(peers: bytes, count: int) -> Iterator[bytes]:
    """Yield the list of peers, each time with another hundredth of them switched."""
    records = json.loads(peers)
    for variant in range(count):
        for index in range(variant, len(records), 100):
            records[index]["connected"] = not records[index]["connected"]
        yield json.dumps(records, separators=(",", ":")).encode()


class Customers(Resource):
    """The API of all accounts."""

    isLeaf = True

    def __init__(self, peers: int, big: int) -> None:
        super().__init__()
        self._small = self._bodies(peers, 20)
        self._big = self._bodies(big, 2) if big else {}
        self._requests: Counter[str] = Counter()

    def _bodies(self, peers: int, count: int) -> dict[str, list[bytes]]:
        network = SimulatedNetwork(peers)
        bodies = {path: [b"".join(network.body(path, START) or ())] for path in PATHS}
        bodies[PEERS] = list(variants(bodies[PEERS][0], count))
        return bodies

    def render(self, request: Request) -> bytes | int:
        token = request.getHeader("Authorization") or ""
        found = (self._big if token == BIG else self._small).get(request.path.decode())
        if found is None:
            request.setResponseCode(404)
            return b"404 page not found\n"
        request.setHeader(b"Content-Type", b"application/json")
        if request.path.decode() == PEERS:
            self._requests[token] += 1
        body = found[self._requests[token] % len(found)]
        request.setHeader(b"Content-Length", b"%d" % len(body))
        pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
        Sender(request, pieces).start()
        return NOT_DONE_YET


def main() -> None:
    port, peers = map(int, sys.argv[1:])
    pem = [os.environ["PEM"]] if "PEM" in os.environ else []
    site = Site(Customers(peers, int(os.environ.get("BIG", "0"))))
    listen(site, port, *pem)
    reactor.run()


if __name__ == "__main__":
    main()

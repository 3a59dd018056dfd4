"""The simulated upstream as a program of its own, which can be killed.

`python -m tests.integration.simulated PORT PEERS [halting]`: a halting one stops in the
middle of the peers, and says so.
"""

import sys
import time

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.server import DEMO_TOKEN
from simulation.company.network import PEERS, SimulatedNetwork

HALFWAY = "halfway through the peers"
"""The error of a halting upstream."""


class Halting(Resource):
    """The API, with peers of which the second half never comes."""

    isLeaf = True

    def __init__(self, api: DemoApi) -> None:
        super().__init__()
        self._api = api

    def render(self, request: Request) -> bytes | int:
        if request.path.decode() != PEERS:
            answer: bytes | int = self._api.render(request)
            return answer
        request.setHeader(b"Content-Type", b"application/json")
        request.write(b'[{"id":"a"},')
        sys.stdout.write(f"{HALFWAY}\n")
        sys.stdout.flush()
        return NOT_DONE_YET


def main() -> None:
    port, peers, *halting = sys.argv[1:]
    api = DemoApi({DEMO_TOKEN: SimulatedNetwork(int(peers))}, now=time.time)
    endpoint = TCP4ServerEndpoint(reactor, int(port), interface="127.0.0.1")
    endpoint.listen(Site(Halting(api) if halting else api))
    reactor.run()


if __name__ == "__main__":
    main()

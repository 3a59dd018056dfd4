"""The simulated upstream as a program of its own, which can be killed.

`python -m tests.integration.simulated PORT PEERS`
"""

import sys
import time

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.web.server import Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.server import DEMO_TOKEN
from simulation.company.network import SimulatedNetwork


def main() -> None:
    port, peers = sys.argv[1:]
    api = DemoApi({DEMO_TOKEN: SimulatedNetwork(int(peers))}, now=time.time)
    endpoint = TCP4ServerEndpoint(reactor, int(port), interface="127.0.0.1")
    endpoint.listen(Site(api))
    reactor.run()


if __name__ == "__main__":
    main()

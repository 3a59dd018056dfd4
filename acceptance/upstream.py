"""A simulated management API behind TLS: `python -m acceptance.upstream PORT FOLDER`.

The folder has server.pem and server.key.
"""

import sys
import time

from twisted.internet import reactor
from twisted.internet.endpoints import serverFromString
from twisted.web.server import Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.server import DEMO_TOKEN
from simulation.company.network import SimulatedNetwork


def main() -> None:
    port, folder = sys.argv[1:]
    files = f"privateKey={folder}/server.key:certKey={folder}/server.pem"
    served = f"ssl:{port}:interface=127.0.0.1:{files}"
    api = DemoApi({DEMO_TOKEN: SimulatedNetwork(50)}, now=time.time)
    serverFromString(reactor, served).listen(Site(api))
    reactor.run()


if __name__ == "__main__":
    main()

"""A bare Twisted site with ready bytes: `benchmarks.static PORT DIRECTORY`."""

import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.static import Data


def main() -> None:
    port, directory = sys.argv[1:]
    tree = Resource()
    for file in Path(directory).iterdir():
        tree.putChild(file.name.encode(), Data(file.read_bytes(), "text/plain"))
    TCP4ServerEndpoint(reactor, int(port), interface="127.0.0.1").listen(Site(tree))
    reactor.run()


if __name__ == "__main__":
    main()

"""A bare Twisted site with prepared bytes: `benchmarks.static PORT DIRECTORY [PEM]`."""

import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.static import Data

from benchmarks.listening import listen


def main() -> None:
    port, directory, *pem = sys.argv[1:]
    tree = Resource()
    for file in Path(directory).iterdir():
        tree.putChild(file.name.encode(), Data(file.read_bytes(), "text/plain"))
    listen(Site(tree), int(port), *pem)
    reactor.run()


if __name__ == "__main__":
    main()

"""A Twisted site of prepared bytes: `checks.benchmarks.static PORT DIRECTORY [PEM]`."""

import sys
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ServerEndpoint
from twisted.internet.ssl import PrivateCertificate
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.static import Data


def listen(site: Site, port: int, *pem: str) -> None:
    """Open the port.

    Args:
        pem: a file with key and certificate; none for plain TCP.
    """
    options: dict[str, Any] = {"interface": "127.0.0.1", "backlog": 1024}
    if pem:
        context = PrivateCertificate.loadPEM(Path(*pem).read_bytes()).options()
        SSL4ServerEndpoint(reactor, port, context, **options).listen(site)
    else:
        TCP4ServerEndpoint(reactor, port, **options).listen(site)


def main() -> None:
    port, directory, *pem = sys.argv[1:]
    tree = Resource()
    for file in Path(directory).iterdir():
        tree.putChild(file.name.encode(), Data(file.read_bytes(), "text/plain"))
    listen(Site(tree), int(port), *pem)
    reactor.run()


if __name__ == "__main__":
    main()

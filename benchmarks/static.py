"""A bare Twisted site with ready bytes: `benchmarks.static PORT DIRECTORY [PEM]`."""

import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ServerEndpoint
from twisted.internet.ssl import PrivateCertificate
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.static import Data


def main() -> None:
    port, directory, *pem = sys.argv[1:]
    tree = Resource()
    for file in Path(directory).iterdir():
        tree.putChild(file.name.encode(), Data(file.read_bytes(), "text/plain"))
    interface, site = "127.0.0.1", Site(tree)
    if pem:
        secret = PrivateCertificate.loadPEM(Path(*pem).read_bytes()).options()
        SSL4ServerEndpoint(reactor, int(port), secret, interface=interface).listen(site)
    else:
        TCP4ServerEndpoint(reactor, int(port), interface=interface).listen(site)
    reactor.run()


if __name__ == "__main__":
    main()

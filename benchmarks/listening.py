"""The listening port of a simulated server on this machine, with or without TLS."""

from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ServerEndpoint
from twisted.internet.ssl import PrivateCertificate
from twisted.web.server import Site


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

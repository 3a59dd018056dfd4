"""Servers of our own process on loopback ports."""

from twisted.internet import reactor
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.interfaces import IProtocolFactory, IStreamServerEndpoint
from twisted.trial.unittest import TestCase


def listening(
    test: TestCase,
    factory: IProtocolFactory,
    endpoint: IStreamServerEndpoint | None = None,
) -> int:
    """Serve until the test ends, by default over plain IPv4; return the port."""
    if endpoint is None:
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
    port = test.successResultOf(endpoint.listen(factory))
    test.addCleanup(port.stopListening)
    address = port.getHost()
    assert isinstance(address, (IPv4Address, IPv6Address))
    return address.port

"""A client's side of a connection to a site, without a network."""

from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from api_exporter.serving.channel import Channel
from api_exporter.serving.site import BoundedSite

CLIENT = IPv4Address("TCP", "10.1.2.3", 40000)


class Connection:
    def __init__(
        self,
        site: BoundedSite,
        client: IPv4Address = CLIENT,
        transport: StringTransport | None = None,
    ) -> None:
        self.transport = transport or StringTransport(peerAddress=client)
        channel = site.buildProtocol(client)
        assert channel is not None
        self.channel: Channel = channel
        self.channel.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        self.channel.dataReceived(data)

    def ask(self, path: str = "/", times: int = 1) -> None:
        """Send requests, all at once."""
        self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * times)

    def heard(self) -> bytes:
        """Return the bytes received since the last call."""
        answered: bytes = self.transport.value()
        self.transport.clear()
        return answered

    def lose(self) -> None:
        self.channel.connectionLost(Failure(ConnectionResetError()))

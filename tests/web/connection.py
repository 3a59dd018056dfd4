"""A client's side of a connection to a site, without a network."""

from contextlib import suppress

from OpenSSL import SSL
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.serving.channel import Channel
from api_exporter.serving.site import BoundedSite

CLIENT = IPv4Address("TCP", "10.1.2.3", 40000)


class Wire(StringTransport):
    """A transport that may also be one below or with TLS."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - the name is Twisted's
        """Do nothing: there is no network."""


class Full(Wire):
    """A transport that pauses its producer after each write."""

    SEND_LIMIT = 0

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.producer is not None:
            self.producer.pauseProducing()


class Waiting(Resource):
    """A page that responds when the test calls `finish`."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def render_GET(self, request: Request) -> int:
        self.requests.append(request)
        return NOT_DONE_YET

    def finish(self) -> None:
        """Complete the oldest request."""
        request = self.requests.pop(0)
        request.write(b"done")
        request.finish()


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


def shake_hands(
    factory: IProtocolFactory, context: SSL.Context, transport: Wire | None = None
) -> SSL.Connection:
    """Return the client's side of a TLS connection after its handshake."""
    transport = transport or Wire(peerAddress=CLIENT)
    server = factory.buildProtocol(CLIENT)
    assert server is not None
    server.makeConnection(transport)
    client = SSL.Connection(context)
    client.set_connect_state()
    for _ in range(2):
        with suppress(SSL.WantReadError):
            client.do_handshake()
        server.dataReceived(client.bio_read(1 << 16))
        client.bio_write(transport.value())
        transport.clear()
    return client

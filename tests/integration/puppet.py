"""Servers of our own, which do as a test says, and a proxy that records its data."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from twisted.internet import reactor
from twisted.internet.endpoints import HostnameEndpoint, connectProtocol
from twisted.internet.interfaces import IAddress, ITCPTransport
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Connection(Protocol):
    """One end of a connection."""

    def send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def close(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()


class Talk(Connection):
    """A connection with one client."""

    factory: "Puppet[Any]"

    def connectionMade(self) -> None:
        self.factory.connections.append(self)

    def connectionLost(self, reason: Failure | None = None) -> None:  # noqa: ARG002
        self.factory.lost += 1


class Conversation(Talk):
    """A connection with one client: a request, then any data through the tunnel.

    Attributes:
        head: the request.
        carried: the data through the tunnel, in both directions.
    """

    def __init__(self) -> None:
        self.head = b""
        self.carried = b""
        self._early = b""
        self._beyond: Beyond | None = None

    def dataReceived(self, data: bytes) -> None:
        if b"\r\n\r\n" not in self.head:
            self.head += data
            if b"\r\n\r\n" in self.head:
                self.factory.answer(self)
            return
        self.carried += data
        if self._beyond is None:
            self._early += data
        else:
            self._beyond.send(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        super().connectionLost(reason)
        if self._beyond is not None:
            self._beyond.close()

    def cut(self) -> None:
        transport = self.transport
        assert transport is not None
        assert ITCPTransport.providedBy(transport)
        transport.abortConnection()

    def carry(self, opened: bytes = OPENED) -> None:
        """Open the requested tunnel and confirm it."""
        target = self.head.split(b" ")[1].decode()
        host, _, port = target.rpartition(":")
        endpoint = HostnameEndpoint(reactor, host.strip("[]"), int(port))

        def made(beyond: Beyond) -> None:
            self._beyond = beyond
            self.send(opened)
            beyond.send(self._early)

        connectProtocol(endpoint, Beyond(self)).addCallback(made)


class Beyond(Connection):
    """The other end of a tunnel."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def dataReceived(self, data: bytes) -> None:
        self._conversation.carried += data
        self._conversation.send(data)

    def connectionLost(self, reason: Failure | None = None) -> None:  # noqa: ARG002
        self._conversation.close()


T = TypeVar("T", bound=Talk)


class Puppet(Factory, Generic[T]):
    """The server.

    Args:
        kind: the type of its connections.
        answer: what is done with every request.

    Attributes:
        lost: the number of connections that have ended.
    """

    noisy = False

    def __init__(self, kind: type[T], answer: Callable[[T], None]) -> None:
        self.answer = answer
        self.connections: list[T] = []
        self.lost = 0
        self._kind = kind

    def buildProtocol(self, addr: IAddress | None) -> T:  # type: ignore[override]  # noqa: ARG002
        connection = self._kind()
        connection.factory = self
        return connection

    async def end(self) -> None:
        """Close all connections, and wait until they have ended."""
        for connection in self.connections:
            connection.close()
        while self.lost < len(self.connections):
            await deferLater(reactor, 0.01)

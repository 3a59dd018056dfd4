"""A proxy of our own, which does as a test tells it and remembers what it has seen."""

from collections.abc import Callable

from twisted.internet import reactor
from twisted.internet.endpoints import HostnameEndpoint, connectProtocol
from twisted.internet.interfaces import IAddress, ITCPTransport
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Conversation(Protocol):
    """A connection with one client: a request, then any data through the tunnel.

    Attributes:
        head: the request.
        carried: the data through the tunnel, in both directions.
    """

    factory: "Puppet"

    def __init__(self) -> None:
        self.head = b""
        self.carried = b""
        self._early = b""
        self._beyond: Beyond | None = None

    def connectionMade(self) -> None:
        self.factory.conversations.append(self)

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

    def connectionLost(self, reason: Failure | None = None) -> None:  # noqa: ARG002
        self.factory.lost += 1
        if self._beyond is not None:
            self._beyond.close()

    def send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def close(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()

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


class Beyond(Protocol):
    """The other end of a tunnel."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def dataReceived(self, data: bytes) -> None:
        self._conversation.carried += data
        self._conversation.send(data)

    def connectionLost(self, reason: Failure | None = None) -> None:  # noqa: ARG002
        self._conversation.close()

    def send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def close(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()


class Puppet(Factory):
    """The proxy.

    Args:
        answer: what is done with every question.

    Attributes:
        lost: conversations that are over.
    """

    noisy = False

    def __init__(self, answer: Callable[[Conversation], None]) -> None:
        self.answer = answer
        self.conversations: list[Conversation] = []
        self.lost = 0

    def buildProtocol(self, addr: IAddress | None) -> Conversation:  # type: ignore[override]  # noqa: ARG002
        conversation = Conversation()
        conversation.factory = self
        return conversation

"""The whole client against servers that speak HTTP as badly as they can."""

from collections.abc import Callable, Sequence

from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IResolverSimple
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from zope.interface import implementer

from tests.integration.ports import listening
from tests.integration.programs import PATIENCE
from tests.integration.reaching import ReachingTestCase

MIB = 1024 * 1024
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


class Raw(Protocol):
    """A connection with given answers to its requests."""

    factory: "Server"

    def connectionMade(self) -> None:
        self.factory.connections.append(self)

    def dataReceived(self, _data: bytes) -> None:
        self.factory.answer(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: ARG002
        self.factory.lost += 1

    def send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def close(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()


class Server(Factory):
    """A server that answers each request with a function.

    Attributes:
        lost: the number of connections that have ended.
    """

    protocol = Raw  # type: ignore[assignment]
    noisy = False

    def __init__(self, answer: Callable[[Raw], None]) -> None:
        self.answer = answer
        self.connections: list[Raw] = []
        self.lost = 0

    async def end(self) -> None:
        """Close all connections, and wait until they have ended."""
        for connection in self.connections:
            connection.close()
        while self.lost < len(self.connections):
            await deferLater(reactor, 0.01)


class HostileTests(ReachingTestCase):
    def start(
        self, answer: Callable[[Raw], None], url: str = "http://localhost"
    ) -> None:
        """Start a server with these answers, and its client."""
        self.server = Server(answer)
        url = f"{url}:{listening(self, self.server)}"
        self.reader = self.client(url, HTTP_TIMEOUT=f"{PATIENCE:g}s")
        self.addCleanup(self.close)

    async def close(self) -> None:
        await self.reader.stopService()
        await self.server.end()

    async def body(self) -> bytes:
        return await self.read(self.reader)

    def found_everywhere(self) -> list[str]:
        """Resolve every name to this machine; return the resolved names."""
        names: list[str] = []

        @implementer(IResolverSimple)
        class Everywhere:
            def getHostByName(  # noqa: N802
                self,
                name: str,
                timeout: Sequence[int] = (),  # noqa: ARG002
            ) -> Deferred[str]:
                names.append(name)
                return succeed("127.0.0.1")

        assert isinstance(reactor, PosixReactorBase)
        before = reactor.nameResolver
        reactor.installResolver(Everywhere())
        self.addCleanup(reactor.installNameResolver, before)
        return names

    async def test_unusual_names(self) -> None:
        """A name that no domain has is resolved and sent like any other."""
        resolved = self.found_everywhere()
        for name in ("net_bird", "r3---sn_1.my-net"):
            self.start(lambda raw: raw.send(GOOD), url=f"http://{name}")
            self.assertEqual(b"[]", await self.body())
            await self.close()
        self.assertEqual(["net_bird", "r3---sn_1.my-net"], resolved)

    async def test_handshake(self) -> None:
        """A server that ends the TLS handshake without a reason speaks no TLS."""

        def answer(raw: Raw) -> None:
            raw.send(b"\x15\x03\x01\x00\x02\x01\x00")
            raw.close()

        self.start(answer, "https://localhost")
        self.assertEqual("tls", (await self.failing(self.reader)).reason)
        self.flushLoggedErrors(IndexError)  # Twisted's own, at such an alert

"""The whole client against servers that speak HTTP as badly as they can."""

import gzip
from collections.abc import Callable, Sequence

from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import TCP4ServerEndpoint, wrapServerTLS
from twisted.internet.interfaces import IAddress, IResolverSimple, IStreamServerEndpoint
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import LoopingCall, deferLater
from twisted.python.failure import Failure
from zope.interface import implementer

from api_exporter.upstream.body import LONGEST_BODY_BYTES
from tests.authority import Issued
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE
from tests.integration.reaching import ReachingTestCase

MIB = 1024 * 1024
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


class Raw(Protocol):
    """A connection with given answers to its requests.

    Attributes:
        answered: requests on this connection before.
    """

    answered = 0
    factory: "RawServer"

    def connectionMade(self) -> None:
        self.factory.connections.append(self)

    def dataReceived(self, _data: bytes) -> None:
        self.factory.answer(self)
        self.answered += 1

    def connectionLost(self, reason: Failure | None = None) -> None:  # noqa: ARG002
        self.factory.lost += 1

    def send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def close(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()

    def endlessly(self, data: bytes) -> None:
        """Send this again and again, as fast as it is read."""
        raw = self
        sent = self.factory.sent

        class Producer:
            def resumeProducing(self) -> None:
                sent.append(len(data))
                raw.send(data)

            def stopProducing(self) -> None:
                pass

        transport = self.transport
        assert transport is not None
        transport.registerProducer(Producer(), False)  # type: ignore[attr-defined]


class RawServer(Factory):
    def __init__(self, answer: Callable[[Raw], None]) -> None:
        self.answer = answer
        self.connections: list[Raw] = []
        self.sent: list[int] = []
        self.lost = 0

    def buildProtocol(self, addr: IAddress | None) -> Protocol:  # noqa: ARG002
        raw = Raw()
        raw.factory = self
        return raw


class HostileTests(ReachingTestCase):
    def start(
        self,
        answer: Callable[[Raw], None],
        *,
        attempts: int = 1,
        url: str = "http://localhost",
        issued: Issued | None = None,
        trusted: str = "",
    ) -> None:
        """Start a server with these answers and its client, by default without TLS."""
        self.server = RawServer(answer)
        endpoint: IStreamServerEndpoint | None = None
        if issued is not None:
            plain = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
            endpoint = wrapServerTLS(issued.server().options(), plain)
        port = listening(self, self.server, endpoint)
        self.reader = self.client(
            f"{url}:{port}",
            API_RETRY_ATTEMPTS=str(attempts),
            HTTP_TIMEOUT=f"{PATIENCE:g}s",
            UPSTREAM_CA_FILE=trusted,
        )
        del self.attempts[:]
        self.addCleanup(self.close)

    async def close(self) -> None:
        await self.reader.stopService()
        for connection in self.server.connections:
            connection.close()
        while self.server.lost < len(self.server.connections):
            await deferLater(reactor, 0.01)

    async def body(self) -> bytes:
        return await self.read(self.reader)

    async def reason(self) -> str:
        return (await self.failing(self.reader)).reason

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
        """A name that no domain has is resolved, sent and verified like any other."""
        resolved = self.found_everywhere()
        for name in ("net_bird", "r3---sn_1.my-net"):
            self.start(lambda raw: raw.send(GOOD), url=f"http://{name}")
            self.assertEqual(b"[]", await self.body())
            await self.close()
        self.assertEqual(["net_bird", "r3---sn_1.my-net"], resolved)
        for name, trusted, readable in (
            ("net_bird", self.trusted, True),
            ("other_bird", self.trusted, False),
            ("net_bird", "", False),
        ):
            self.start(
                lambda raw: raw.send(GOOD),
                url="https://net_bird",
                issued=self.authority.issue(name),
                trusted=trusted,
            )
            if readable:
                self.assertEqual(b"[]", await self.body())
            else:
                error = await self.failing(self.reader)
                self.assertEqual("tls", error.reason)
                self.assertNotIn("handshake", str(error))
            await self.close()

    async def test_endless_headers(self) -> None:
        """More than 256 kB before a body end the attempt, in any form."""
        line = b"X-Header: " + b"x" * 1000 + b"\r\n"
        for head, more in (
            (b"HTTP/1.1 200 OK\r\n", line * 16),
            (b"", b"HTTP/1.1 103 Early Hints\r\n" + line * 16 + b"\r\n"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ):

            def answer(raw: Raw, head: bytes = head, more: bytes = more) -> None:
                raw.send(head)
                raw.endlessly(more)

            self.start(answer, attempts=3)
            error = await self.failing(self.reader)
            self.assertEqual("too_large", error.reason)
            self.assertIn("262144 bytes of headers", str(error))
            self.assertEqual(1, len(self.attempts))
            # What stands in the buffers between has been sent, too.
            self.assertLess(sum(self.server.sent), 16 * MIB)
            await self.close()

    async def test_long_bodies(self) -> None:
        """The limit of the headers does not include the body, on every request."""
        body = b"[" + b" " * MIB + b"]"
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n".encode()
        self.start(lambda raw: raw.send(head + b"X: y\r\n" * 1000 + b"\r\n" + body))
        for _ in range(60):
            self.assertEqual(body, await self.body())
        self.assertEqual(1, len(self.server.connections))

    async def test_closed_at_reuse(self) -> None:
        """A kept connection that is closed when it is used again is no failure."""

        def answer(raw: Raw) -> None:
            if raw.answered:
                raw.close()
            else:
                raw.send(GOOD)

        self.start(answer)
        for _ in range(6):
            self.assertEqual(b"[]", await self.body())
        self.assertEqual(6, len(self.server.connections))
        self.assertEqual(
            [(1, 200, "")] * 6, [(a.number, a.status, a.error) for a in self.attempts]
        )

    async def test_closed(self) -> None:
        """A new connection that is closed is a failure; so is one that is closed within
        an answer, and the second of two.
        """

        def at_once(raw: Raw) -> None:
            raw.close()

        def within_the_answer(raw: Raw) -> None:
            raw.send(GOOD[: 30 if raw.answered else None])
            if raw.answered:
                raw.close()

        def always(raw: Raw) -> None:
            if len(self.server.connections) == 1 and not raw.answered:
                raw.send(GOOD)
            else:
                raw.close()

        for answer, good, connections in (
            (at_once, 0, 1),
            (within_the_answer, 1, 1),
            (always, 1, 2),
        ):
            self.start(answer)
            for _ in range(good):
                self.assertEqual(b"[]", await self.body())
            self.assertEqual("connect", await self.reason())
            self.assertEqual(connections, len(self.server.connections))
            await self.close()

    async def test_bombs(self) -> None:
        """Kilobytes that become gigabytes stop neither the loop nor the next answer."""
        bomb = gzip.compress(bytes(300 * MIB))
        turns: list[None] = []
        watch = LoopingCall(turns.append, None)
        watch.start(0)
        self.addCleanup(watch.stop)
        for coding, reason in (("gzip", "too_large"), ("gzip, gzip", "decode")):
            head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n".encode()
            length = f"Content-Length: {len(bomb)}\r\n\r\n".encode()
            whole = head + length + bomb
            self.start(lambda raw, whole=whole: raw.send(whole))  # type: ignore[misc]
            self.assertEqual(reason, await self.reason())
            await self.close()
        self.assertGreaterEqual(len(turns), LONGEST_BODY_BYTES // MIB)

    async def test_handshake(self) -> None:
        """A server that ends the TLS handshake without a word speaks no TLS for us."""
        alert = b"\x15\x03\x01\x00\x02"
        for answered in (b"", alert + b"\x01\x00", alert + b"\x02\x46", GOOD):

            def answer(raw: Raw, data: bytes = answered) -> None:
                raw.send(data)
                raw.close()

            self.start(answer, url="https://localhost")
            self.assertEqual("tls", await self.reason(), answered)
            await self.close()
        self.flushLoggedErrors(
            IndexError
        )  # Twisted's own, at an alert without an error

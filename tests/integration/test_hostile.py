"""The whole client against servers that speak HTTP as badly as they can."""

import gzip
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.internet.interfaces import (
    IAddress,
    IResolverSimple,
    IStreamServerEndpoint,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import LoopingCall, deferLater
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase
from zope.interface import implementer

from api_exporter.netbird.unpacking import unpack
from api_exporter.ports import Attempt, UpstreamError
from api_exporter.settings import environment
from api_exporter.upstream.body import LONGEST_BODY_BYTES
from api_exporter.upstream.client import Client
from api_exporter.world import World
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE
from tests.integration.test_failures import self_signed

SECRET = "nbp_0canary0canary0canary0canary0can0000"
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


class HostileTests(TestCase):
    timeout = 2 * PATIENCE

    def start(
        self,
        answer: Callable[[Raw], None],
        *,
        attempts: int = 1,
        scheme: str = "http",
        host: str = "localhost",
        endpoint: IStreamServerEndpoint | None = None,
    ) -> None:
        """Start a server with these answers, by default without TLS, and its client."""
        self.server = RawServer(answer)
        port = listening(self, self.server, endpoint)
        settings = environment.read_settings(
            {
                "UPSTREAM_API_URL": f"{scheme}://{host}:{port}",
                "UPSTREAM_API_TOKEN": SECRET,
                "API_RETRY_ATTEMPTS": str(attempts),
                "HTTP_TIMEOUT": f"{PATIENCE:g}s",
            }
        )
        self.attempts: list[Attempt] = []
        assert isinstance(reactor, PosixReactorBase)
        self.client = Client(
            settings.accounts[""],
            reactor,
            world=World(reactor, time.time, random.random),
            on_attempt=self.attempts.append,
        )
        self.addCleanup(self.close)

    async def close(self) -> None:
        await self.client.stopService()
        for connection in self.server.connections:
            connection.close()
        while self.server.lost < len(self.server.connections):
            await deferLater(reactor, 0.01)

    async def fetch(self) -> bytes:
        body = await self.client.fetcher.fetch("api/peers", PATIENCE)
        body.close()
        return await deferToThread(unpack, body)

    async def failing(self) -> UpstreamError:
        try:
            body = await self.fetch()
        except UpstreamError as error:
            return error
        raise self.failureException(f"it went well: {body!r}")

    def found_everywhere(self) -> list[str]:
        """Resolve every name to this machine; return the resolved names."""
        asked: list[str] = []

        @implementer(IResolverSimple)
        class Everywhere:
            def getHostByName(  # noqa: N802
                self,
                name: str,
                timeout: Sequence[int] = (),  # noqa: ARG002
            ) -> Deferred[str]:
                asked.append(name)
                return succeed("127.0.0.1")

        assert isinstance(reactor, PosixReactorBase)
        before = reactor.nameResolver
        reactor.installResolver(Everywhere())
        self.addCleanup(reactor.installNameResolver, before)
        return asked

    async def test_unusual_names_over_tls(self) -> None:
        """An unusual name is sent and verified like any other."""
        self.addCleanup(os.environ.pop, "SSL_CERT_FILE", None)
        self.found_everywhere()
        for name, trusted, problem in (
            ("net_bird", True, ""),
            ("other_bird", True, "tls"),
            ("net_bird", False, "tls"),
        ):
            certificate = self_signed(name)
            bundle = Path(self.mktemp())
            bundle.write_bytes(certificate.dumpPEM() if trusted else b"")
            os.environ["SSL_CERT_FILE"] = str(bundle.absolute())
            endpoint = SSL4ServerEndpoint(
                reactor, 0, certificate.options(), interface="127.0.0.1"
            )
            self.start(
                lambda raw: raw.send(GOOD),
                scheme="https",
                host="net_bird",
                endpoint=endpoint,
            )
            if problem:
                error = await self.failing()
                self.assertEqual(problem, error.reason)
                self.assertNotIn("handshake", str(error))
            else:
                self.assertEqual(b"[]", await self.fetch())
            await self.close()

    async def test_unusual_names(self) -> None:
        """A name that no domain has is looked up and called as it stands."""
        asked = self.found_everywhere()
        for name in ("net_bird", "r3---sn_1.my-net"):
            self.start(lambda raw: raw.send(GOOD), host=name)
            self.assertEqual(b"[]", await self.fetch())
            await self.close()
        self.assertEqual(["net_bird", "r3---sn_1.my-net"], asked)

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
            error = await self.failing()
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
            self.assertEqual(body, await self.fetch())
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
            self.assertEqual(b"[]", await self.fetch())
        self.assertEqual(6, len(self.server.connections))
        self.assertEqual(
            [(1, 200, "")] * 6, [(a.number, a.status, a.error) for a in self.attempts]
        )

    async def test_closed_at_first_use(self) -> None:
        """A connection that is closed when it is new is a failure, at once."""
        self.start(lambda raw: raw.close())
        self.assertEqual("connect", (await self.failing()).reason)
        self.assertEqual(1, len(self.server.connections))

    async def test_closed_in_the_answer(self) -> None:
        """A kept connection that breaks off within an answer is a failure."""

        def answer(raw: Raw) -> None:
            raw.send(GOOD[: 30 if raw.answered else None])
            if raw.answered:
                raw.close()

        self.start(answer)
        await self.fetch()
        self.assertEqual("connect", (await self.failing()).reason)
        self.assertEqual(1, len(self.server.connections))

    async def test_always_closed(self) -> None:
        """One more try is all that a closed connection gets."""

        def answer(raw: Raw) -> None:
            if len(self.server.connections) == 1 and not raw.answered:
                raw.send(GOOD)
            else:
                raw.close()

        self.start(answer)
        await self.fetch()
        self.assertEqual("connect", (await self.failing()).reason)
        self.assertEqual(2, len(self.server.connections))

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
            self.assertEqual(reason, (await self.failing()).reason)
            await self.close()
        self.assertGreaterEqual(len(turns), LONGEST_BODY_BYTES // MIB)

    async def test_packed_otherwise(self) -> None:
        """A body in a coding that is refused leaves no connection open."""
        for status in ("200 OK", "503 No"):
            for coding in ("br", "gzip, gzip"):
                head = f"HTTP/1.1 {status}\r\nContent-Encoding: {coding}\r\n"
                whole = head.encode() + b"Content-Length: 99\r\n\r\n["
                self.start(lambda raw, whole=whole: raw.send(whole))  # type: ignore[misc]
                for _ in range(3):
                    await self.failing()
                    while self.server.lost < len(self.server.connections):
                        await deferLater(reactor, 0.01)
                self.assertEqual(3, self.server.lost)
                await self.close()

    async def test_handshake(self) -> None:
        """A server that ends the TLS handshake without a word speaks no TLS for us."""
        alert = b"\x15\x03\x01\x00\x02"
        for said in (b"", alert + b"\x01\x00", alert + b"\x02\x46", GOOD):

            def answer(raw: Raw, said: bytes = said) -> None:
                raw.send(said)
                raw.close()

            self.start(answer, scheme="https")
            self.assertEqual("tls", (await self.failing()).reason, said)
            await self.close()
        self.flushLoggedErrors(
            IndexError
        )  # Twisted's own, at an alert without an error

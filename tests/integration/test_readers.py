"""Readers that are slow, that vanish, that read nothing, that are too many."""

import socket
import ssl
import statistics
import sys
import time
from collections.abc import Sized
from pathlib import Path
from typing import Any, cast

from twisted.internet import reactor
from twisted.internet.endpoints import (
    SSL4ClientEndpoint,
    SSL4ServerEndpoint,
    connectProtocol,
)
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.trial.unittest import TestCase
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.exposition.pages import piece
from api_exporter.netbird.resources import UP
from api_exporter.serving import page_readers
from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.sender import Sender
from api_exporter.serving.site import BoundedSite
from api_exporter.serving.slow_readers import INTERVAL, LONGEST_ANSWER, STANDSTILL
from tests import THOROUGH
from tests.integration.ports import listening
from tests.integration.programs import (
    PATIENCE,
    ROOT,
    Running,
    environment,
    free_port,
    get,
    scraped,
    start,
    until,
)
from tests.integration.test_failures import self_signed
from tests.logbook import logbook
from tests.web.watched import Watched

REQUEST = b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n"


class CrowdTests(TestCase):
    """A real exporter of ten thousand peers."""

    timeout = 120
    readers = 500

    def setUp(self) -> None:
        directory = Path(self.mktemp())
        directory.mkdir(parents=True)
        self.port = free_port()
        self.running = start(
            self,
            [sys.executable, "-m", "api_exporter", "--demo"],
            directory,
            environment(
                LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
                DEMO_PEERS="10000",
                MAX_CONNECTIONS=str(self.readers + 10),
                REFRESH_INTERVALS="peers=1h",  # a refresh takes memory of its own
            ),
        )
        read = 'api_exporter_resource_up{resource="instance_version"} 1.0'
        until(lambda: scraped(self.url(), read), "the first round")

    def url(self, path: str = "/metrics") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def megabytes(self) -> float:
        """The exporter's resident memory."""
        status = Path(f"/proc/{self.running.process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) / 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.running.process.pid}/fd").iterdir()))

    def reader(self, path: bytes = b"/metrics") -> socket.socket:
        """A client that takes little at a time and has asked for a page."""
        client = socket.socket()
        self.addCleanup(client.close)
        client.settimeout(PATIENCE)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self.port))
        client.sendall(REQUEST % path)
        return client

    def scrape(self) -> float:
        """Seconds for a whole page."""
        begin = time.monotonic()
        status, _, body = get(self.url())
        self.assertEqual(200, status)
        self.assertGreater(len(body), 5_000_000)
        return time.monotonic() - begin

    def test_slow(self) -> None:
        """Hundreds of slow readers hold slices, no pages, and slow nobody down."""
        alone = statistics.median(self.scrape() for _ in range(7))
        before, files = self.megabytes(), self.open_files()
        clients = [self.reader() for _ in range(self.readers)]
        among = []
        for _ in range(5):
            for client in clients:
                self.assertTrue(client.recv(1024))
            among.append(self.scrape())
        self.assertLess(self.megabytes() - before, 64)
        if THOROUGH:
            self.assertLess(statistics.median(among), 3 * alone + 0.1)
        for client in clients:
            client.close()
        until(lambda: self.open_files() <= files + 2, "all connections closed")
        in_flight = "api_exporter_scrapes_in_flight 1.0"
        until(lambda: scraped(self.url(), in_flight), "no scrape under way but ours")

    def test_too_many(self) -> None:
        """Where all are being answered, only /health is, and idle ones give way."""
        for client in [self.reader() for _ in range(self.readers + 10)]:
            self.assertTrue(client.recv(1))
        refused = self.reader()
        self.assertTrue(refused.recv(10_000).startswith(b"HTTP/1.1 503 "))
        self.assertEqual(b"", self.received(refused))
        health = self.reader(b"/health")
        self.assertTrue(health.recv(100).startswith(b"HTTP/1.1 200 "))
        waiting = [self.silent() for _ in range(20)]
        self.assertEqual(b"", self.received(waiting[0]))
        waiting[-1].sendall(REQUEST % b"/health")
        self.assertTrue(waiting[-1].recv(100).startswith(b"HTTP/1.1 200 "))

    def silent(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.addCleanup(client.close)
        return client

    def received(self, client: socket.socket) -> bytes:
        try:
            return client.recv(100)
        except ConnectionResetError:
            return b""


class MannersTests(TestCase):
    """A real exporter, and a crowd that keeps it busy."""

    timeout = 120

    def setUp(self) -> None:
        self.directory = Path(self.mktemp())
        self.directory.mkdir(parents=True)
        self.port = free_port()
        running = start(
            self,
            [sys.executable, "-m", "api_exporter", "--demo"],
            self.directory,
            environment(LISTEN_ADDRESS=f"127.0.0.1:{self.port}"),
        )
        until(lambda: " is at " in running.said(), "the start")

    def crowd(self, kind: str, count: int) -> Running:
        """Clients of this kind for five seconds."""
        module = [sys.executable, "-m", "tests.integration.crowd", kind]
        directory = Path(self.mktemp())
        directory.mkdir()
        arguments = [str(self.port), str(count), "5"]
        path = {"PYTHONPATH": str(ROOT)}
        return start(self, [*module, *arguments], directory, environment(**path))

    def answers(self, crowd: Running, *paths: str) -> list[float]:
        """The seconds that each answer took while there was a crowd, ascending."""
        until(lambda: "begin" in crowd.said(), "the crowd")
        time.sleep(1)
        seconds = []
        while crowd.process.poll() is None:
            for path in paths:
                begin = time.monotonic()
                # From an address of its own: the crowd has another one.
                status, _, _ = get(f"http://127.0.0.1:{self.port}{path}")
                seconds.append(time.monotonic() - begin)
                self.assertEqual(200, status, path)
        self.assertEqual(0, crowd.process.returncode, crowd.said())
        self.assertGreater(int(crowd.said().split()[-1]), 1000)
        return sorted(seconds)

    def assert_within(self, bound: float, kind: str, count: int, *paths: str) -> None:
        """All are answered; in a thorough run 99 of 100 within a bound in seconds."""
        seconds = self.answers(self.crowd(kind, count), *paths)
        if THOROUGH:
            self.assertLess(seconds[int(0.99 * len(seconds))], bound)

    def test_idle(self) -> None:
        """A thousand idle connections of one address shut nobody else out."""
        self.assert_within(1.0, "idle", 1000, "/health", "/metrics")

    def test_looping(self) -> None:
        """Fifty who look at the status page without a break hold nobody up."""
        self.assert_within(0.25, "looping", 50, "/health")


class Endless(ReadOnlyPage):
    """More than any buffer takes."""

    def render_GET(self, request: Request) -> int:
        Sender(request, iter([b"x" * 512 * 1024] * 100)).start()
        return NOT_DONE_YET


class Thinking(ReadOnlyPage):
    """An answer that is not ready yet, such as a profile's."""

    def render_GET(self, _request: Request) -> int:
        return NOT_DONE_YET


class Closing(ReadOnlyPage):
    """More than a connection holds, and then its end."""

    def render_GET(self, request: Request) -> bytes:
        request.setHeader(b"Connection", b"close")
        request.channel.persistent = False
        return b"x" * 20_000_000


class Standing(Protocol):
    """Asks for much, reads something of it and stops."""

    transport: TLSMemoryBIOProtocol
    read = False

    def connectionMade(self) -> None:
        self.transport.write(REQUEST % b"/endless")

    def dataReceived(self, _data: bytes) -> None:
        self.read = True
        self.transport.pauseProducing()


class LookTests(TestCase):
    """The server in our own process, with real connections and a clock of our own."""

    timeout = 2 * PATIENCE

    def setUp(self) -> None:
        watched = Watched(collectors=[UP])
        self.clock, self.pages = watched.clock, watched.pages
        for page in (Endless(), Thinking(), Closing()):
            watched.tree.putChild(type(page).__name__.lower().encode(), page)
        self.site = BoundedSite(watched.tree, self.clock)
        self.book = logbook(self)
        self.port = listening(self, self.site)

    async def reader(self, path: bytes) -> socket.socket:
        """A client that has asked for a page."""
        client = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(client.close)
        client.setblocking(False)
        client.sendall(REQUEST % path)
        await self.pause()
        return client

    async def pause(self) -> None:
        """Many turns of the loop, not one long one: all that can happen happens."""
        for _ in range(30):
            await deferLater(reactor, 0.01)

    async def outwait(self, there: Sized) -> None:
        """Look as often as it takes to drop the one client that is there until then."""
        for _ in range(STANDSTILL + 1):
            self.assertEqual(1, len(there))
            self.clock.advance(INTERVAL)
            await self.pause()

    async def assert_dropped(self, why: str = "") -> None:
        await self.pause()
        self.assertEqual(set(), self.site.under_way)
        self.assertEqual(set(), self.site.connections)
        lines = [line.partition(" bytes_left=")[0] for line in self.book.lines()]
        self.assertEqual(
            [f"info closed the connection of a slow client: {why}"] if why else [],
            lines,
        )

    async def test_reads_nothing(self) -> None:
        """A client that is found where it was, again and again, is dropped."""
        await self.reader(b"/endless")
        [channel] = self.site.connections
        self.assertLess(channel.unsent(), 1_000_000)  # the system's part of it
        await self.outwait(self.site.under_way)
        await self.assert_dropped("the client read nothing for one minute")

    async def test_reads_no_end(self) -> None:
        """So is one that leaves the last answer of its connection where it is."""
        await self.reader(b"/closing")
        self.assertEqual(set(), self.site.under_way)
        await self.outwait(self.site.connections)
        await self.assert_dropped("the client read nothing for one minute")

    async def test_reads_a_little(self) -> None:
        """A client that reads something between the looks may stay."""
        client = await self.reader(b"/endless")
        for _ in range(2 * STANDSTILL):
            client.recv(300_000)
            await self.pause()
            self.clock.advance(INTERVAL)
        self.assertEqual(1, len(self.site.under_way))
        client.close()
        await self.assert_dropped()

    async def test_reads_for_ever(self) -> None:
        """A client that takes minutes for one answer is dropped, however it reads."""
        client = await self.reader(b"/endless")
        for _ in range(int(LONGEST_ANSWER / INTERVAL) + 1):
            self.assertEqual(1, len(self.site.under_way))
            client.recv(300_000)
            await self.pause()
            self.clock.advance(INTERVAL)
        await self.assert_dropped("the answer took too long")

    async def test_reads_again_and_again(self) -> None:
        """Found busy at every look, but with another answer each time: no harm."""
        client = await self.reader(b"/closing")
        [channel] = self.site.connections
        for _ in range(2 * int(LONGEST_ANSWER / INTERVAL)):
            channel.answered += 1
            self.clock.advance(INTERVAL)
        self.assertEqual({channel}, self.site.connections)
        client.close()
        await self.assert_dropped()

    async def test_waits_for_long(self) -> None:
        """A client whose answer takes minutes to be made has done nothing wrong."""
        client = await self.reader(b"/thinking")
        self.clock.pump([INTERVAL] * 2 * int(LONGEST_ANSWER / INTERVAL))
        self.assertEqual(1, len(self.site.under_way))
        client.close()
        await self.assert_dropped()

    async def test_old_pages(self) -> None:
        """When old pages take much memory the readers of the oldest are dropped."""
        self.patch(page_readers, "ROOM", 1_000_000)
        seen = []
        for letter in b"abcde":
            self.pages.publish("peers", (piece(bytes([letter]) * 3_000_000),))
            await self.reader(b"/metrics")
            seen.append(len(self.site.under_way))
        self.assertEqual([1, 2, 3, 3, 3], seen)
        for _ in range(4):
            await self.reader(b"/metrics")
        self.assertEqual(7, len(self.site.under_way))
        self.assertEqual(
            ["info closed the connection of a slow client: it still reads an old page"]
            * 2,
            self.book.lines(),
        )
        for channel in list(self.site.connections):
            channel.forceAbortClient()
        await self.pause()

    def secured(self) -> int:
        """A port at which the same site is served over TLS."""
        factory = self_signed("localhost").options()
        server = SSL4ServerEndpoint(reactor, 0, factory, interface="127.0.0.1")
        return listening(self, self.site, server)

    async def test_never_hangs_up(self) -> None:
        """The end of a TLS connection takes two; the client's is not waited for."""

        def ask(port: int) -> ssl.SSLSocket:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            plain = socket.create_connection(("127.0.0.1", port))
            client = context.wrap_socket(plain)
            client.sendall(b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n")
            while client.recv(65536):
                pass
            return client

        client = await deferToThread(ask, self.secured())
        self.addCleanup(client.close)
        await self.pause()
        await self.outwait(self.site.connections)
        await self.assert_dropped("the client did not close it")

    async def test_encrypted(self) -> None:
        """What has been encrypted for a reader that stands still is little."""
        port = self.secured()
        client = SSL4ClientEndpoint(reactor, "127.0.0.1", port, CertificateOptions())
        reader = await connectProtocol(client, Standing())
        for _ in range(100):
            await self.pause()
            if reader.read:
                break
        [channel] = self.site.connections
        below: Any = cast(TLSMemoryBIOProtocol, channel.transport).transport
        self.assertGreater(channel.unsent(), 0)
        self.assertLess(len(below.dataBuffer) + below._tempDataLen, 256 * 1024)
        reader.transport.abortConnection()
        await self.assert_dropped()

"""The server as it ends: requests under way are finished, within reason."""

import gc
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.logger import LogLevel
from twisted.trial.unittest import SynchronousTestCase
from twisted.web import http
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.serving.site import (
    FILES_OF_ACCOUNT,
    GRACE,
    OTHER_FILES,
    RESERVE,
    BoundedSite,
    max_connections,
)
from tests.logbook import logbook
from tests.web.connection import CLIENT, Connection


class Waiting(Resource):
    """Answers when the test says so."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def render_GET(self, request: Request) -> int:
        self.requests.append(request)
        return NOT_DONE_YET

    def finish(self) -> None:
        """End the oldest request."""
        request = self.requests.pop(0)
        request.write(b"done")
        request.finish()


class SiteTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.page = Waiting()
        self.site = BoundedSite(self.page, self.clock)
        self.site.timeOut = None  # connections end with the test

    def asked(self) -> Connection:
        """A connection with one request under way."""
        connection = Connection(self.site)
        connection.ask()
        return connection

    def assert_quiet(self) -> None:
        """No timer is left but deadlines of answers, and no error was logged."""
        gc.collect()
        deadlines = {channel._deadline for channel in self.site.connections}
        self.assertLessEqual(set(self.clock.getDelayedCalls()), deadlines)
        self.assertEqual([], self.flushLoggedErrors())

    def test_idle(self) -> None:
        """Without a request there is nothing to wait for, open connections or not."""
        Connection(self.site)
        self.successResultOf(self.site.drained(self.clock))
        self.asked()
        self.page.finish()
        self.successResultOf(self.site.drained(self.clock))
        self.assert_quiet()

    def test_last_request(self) -> None:
        """It is over when the last request under way has ended."""
        self.asked()
        self.asked()
        drained = self.site.drained(self.clock)
        self.page.finish()
        self.clock.advance(GRACE - 1)
        self.assertNoResult(drained)
        self.page.finish()
        self.successResultOf(drained)
        self.assert_quiet()

    def test_gone(self) -> None:
        """A client that goes away ends its request."""
        connection = self.asked()
        drained = self.site.drained(self.clock)
        connection.lose()
        self.successResultOf(drained)
        self.assert_quiet()

    def test_grace(self) -> None:
        """A request that does not end is given up after the grace."""
        connection = self.asked()
        drained = self.site.drained(self.clock)
        self.clock.advance(GRACE - 0.1)
        self.assertNoResult(drained)
        self.clock.advance(0.2)
        self.successResultOf(drained)
        connection.lose()
        self.assert_quiet()

    def test_afterwards(self) -> None:
        """What connections that are still open ask for later is no failure."""
        for late in (False, True):
            connection = self.asked()
            drained = self.site.drained(self.clock)
            if late:
                self.clock.advance(GRACE)
            self.page.finish()
            self.successResultOf(drained)
            for _ in range(2):
                connection.ask()
                self.page.finish()
            self.assert_quiet()

    def test_log(self) -> None:
        """A request is one line, for debugging only, when it has been answered."""
        book = logbook(self)
        connection = Connection(self.site)
        connection.ask("/metrics?token=x")
        self.assertEqual([], book.lines(LogLevel.debug))
        self.page.finish()
        self.assertEqual(
            ["debug GET /metrics status=200 client=10.1.2.3 bytes=4"],
            book.lines(LogLevel.debug),
        )
        self.assertEqual([], book.lines())

    def test_log_hostile(self) -> None:
        """Whatever a client asks for, its line is one line."""
        book = logbook(self)
        Connection(self.site).ask("/%1b[31m%0a{client}")
        self.page.finish()
        [line] = book.lines(LogLevel.debug)
        self.assertTrue(line.isprintable(), line)
        self.assertIn("{client}", line)


class RoomTests(SynchronousTestCase):
    """A site for three, and one page."""

    def setUp(self) -> None:
        self.page = Waiting()
        self.site = BoundedSite(self.page, Clock(), max_connections=3)
        self.site.timeOut = None

    def connected(self, *hosts: int) -> list[Connection]:
        """A connection from each of these addresses."""
        return [
            Connection(self.site, IPv4Address("TCP", f"10.0.0.{host}", 40000))
            for host in hosts
        ]

    def gone(self, *connections: Connection) -> list[bool]:
        """Which of them have been dropped."""
        return [connection.transport.disconnected for connection in connections]

    def test_greedy(self) -> None:
        """When it is full, the address that has most loses its oldest idle one."""
        clients = self.connected(1, 2, 2)
        new = self.connected(3)
        self.assertEqual([False, True, False, False], self.gone(*clients, *new))
        new[0].ask()
        self.page.finish()
        self.assertIn(b"done", new[0].heard())
        self.assertEqual(3, len(self.site.connections))

    def test_under_way(self) -> None:
        """Who waits for an answer, or has not taken it yet, keeps its connection."""
        asking, taking, idle = self.connected(1, 1, 2)
        asking.ask()
        taking.ask()
        self.page.requests.reverse()
        self.page.finish()
        self.patch(taking.channel, "unsent", lambda: 1)
        self.connected(3)
        self.assertEqual([False, False, True], self.gone(asking, taking, idle))
        self.patch(taking.channel, "unsent", lambda: 0)
        self.connected(4)
        self.assertEqual([False, True], self.gone(asking, taking))

    def test_trickling(self) -> None:
        """A request that is not complete does not keep anybody."""
        [client] = self.connected(1)
        client.send(b"GET / HTTP/1.1\r\nHost:")
        self.connected(1, 1, 2)
        self.assertEqual([True], self.gone(client))

    def test_nobody_idle(self) -> None:
        """Where all are answered, the reserve gets 503, and then nobody gets in."""
        for client in self.connected(1, 1, 1):
            client.ask()
        refused = self.connected(2)[0]
        refused.ask()
        self.assertIn(b"HTTP/1.1 503 ", refused.heard())
        for _ in range(RESERVE):
            for client in self.connected(3):
                self.patch(client.channel, "unsent", lambda: 1)
        self.assertIsNone(self.site.buildProtocol(CLIENT))

    def test_http1(self) -> None:
        """Over TLS nothing but HTTP/1 is offered, whatever is installed beside us."""
        self.patch(http, "H2_ENABLED", True)
        self.assertEqual([b"http/1.1"], self.site.acceptableProtocols())


class MaxConnectionsTests(SynchronousTestCase):
    def limit(self, files: int) -> None:
        """Let this process open so many files until the test ends."""
        soft, hard = getrlimit(RLIMIT_NOFILE)
        self.addCleanup(setrlimit, RLIMIT_NOFILE, (soft, hard))
        setrlimit(RLIMIT_NOFILE, (files, hard))

    def test_room(self) -> None:
        """What is wanted, where there is room for it."""
        book = logbook(self)
        self.limit(OTHER_FILES + 100)
        self.assertEqual([1, 100], [max_connections(1), max_connections(100)])
        self.assertEqual([], book.lines())

    def test_accounts(self) -> None:
        """The connections of many accounts have room beside, if the limit has it."""
        book = logbook(self)
        for soft in (OTHER_FILES + 100, OTHER_FILES + 1000):
            self.limit(soft)
            self.assertEqual(100, max_connections(100, 51))
            enough = OTHER_FILES + 50 * FILES_OF_ACCOUNT + 100
            self.assertEqual(max(soft, enough), getrlimit(RLIMIT_NOFILE)[0])
        self.assertEqual([], book.lines())

    def test_no_room(self) -> None:
        """Less, with a warning, where open files are scarce; never none at all."""
        for files, room in ((OTHER_FILES + 100, 100), (OTHER_FILES - 1, 1)):
            book = logbook(self)
            self.limit(files)
            self.assertEqual(room, max_connections(101))
            self.assertEqual(
                [
                    f"warning MAX_CONNECTIONS is 101, but {files} open files allow"
                    f" only {room}"
                ],
                book.lines(),
            )

"""The server's limits, and its stop: it waits for requests under way, for a while."""

import gc
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogLevel
from twisted.trial.unittest import SynchronousTestCase
from twisted.web import http

from api_exporter.serving.site import BoundedSite, connection_limit
from tests.logbook import logbook
from tests.web.connection import Connection, Waiting


class SiteTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.page = Waiting()
        self.site = BoundedSite(self.page, self.clock)
        self.site.timeOut = None  # connections have no timeout

    def request(self) -> Connection:
        """Return a connection with one request under way."""
        connection = Connection(self.site)
        connection.ask()
        return connection

    def drain(self) -> Deferred[None]:
        """Begin to wait for what is still to be sent."""
        return Deferred.fromCoroutine(self.site.drain(self.clock))

    def assert_quiet(self) -> None:
        """Assert that only deadlines of responses are left, and no error is logged."""
        gc.collect()
        deadlines = {channel._deadline for channel in self.site.connections}
        self.assertLessEqual(set(self.clock.getDelayedCalls()), deadlines)
        self.assertEqual([], self.flushLoggedErrors())

    def test_idle(self) -> None:
        """Without requests, a stop waits a turn: for what TLS may still buffer."""
        self.successResultOf(self.drain())
        Connection(self.site)
        for _ in range(2):
            drained = self.drain()
            self.assertNoResult(drained)
            self.clock.advance(0.02)
            self.successResultOf(drained)
            self.request()
            self.page.finish()
        self.assert_quiet()

    def test_requests(self) -> None:
        """A stop waits for requests under way, for five seconds, and a turn for TLS."""
        for end in ("answered", "lost", "late"):
            self.setUp()
            self.request()
            connection = self.request()
            drained = self.drain()
            self.page.finish()
            self.clock.advance(4.9)
            self.assertNoResult(drained)
            if end == "answered":
                self.page.finish()
            elif end == "lost":
                connection.lose()
            else:
                self.clock.advance(0.1)
            self.assertEqual(end == "late", drained.called)
            self.clock.advance(0.02)
            self.successResultOf(drained)
            self.assert_quiet()

    def test_unread(self) -> None:
        """A stop waits until clients have received their responses."""
        connection = self.request()
        self.page.finish()
        left = self.patch(connection.channel, "unsent_bytes", lambda: 1)
        drained = self.drain()
        self.clock.advance(4.9)
        self.assertNoResult(drained)
        left.restore()
        self.clock.advance(0.02)
        self.successResultOf(drained)

    def test_afterwards(self) -> None:
        """Requests after the stop, on open connections, raise no error."""
        for late in (False, True):
            connection = self.request()
            drained = self.drain()
            if late:
                self.clock.advance(5)
            self.page.finish()
            self.clock.advance(0.02)
            self.successResultOf(drained)
            for _ in range(2):
                connection.ask()
                self.page.finish()
            self.assert_quiet()

    def test_log(self) -> None:
        """A request is one printable debug line when it has been answered."""
        book = logbook(self)
        for path, line in (
            ("/metrics?token=x", "GET /metrics status=200 client=10.1.2.3 bytes=4"),
            ("/%1b[31m%0a{client}", "{client}"),
        ):
            Connection(self.site).ask(path)
            self.assertEqual([], book.lines(LogLevel.debug))
            self.page.finish()
            [found] = book.lines(LogLevel.debug)
            self.assertTrue(found.isprintable(), found)
            self.assertIn(line, found)
            self.assertEqual([], book.lines())
            book.events.clear()


OTHER = IPv4Address("TCP", "10.1.2.4", 40000)


class RoomTests(SynchronousTestCase):
    """A site for three connections, with one page."""

    def setUp(self) -> None:
        self.page = Waiting()
        self.site = BoundedSite(self.page, Clock(), max_connections=3)
        self.site.timeOut = None

    def test_full(self) -> None:
        """Clients within the reserve get 503, except for /health; others are closed."""
        clients = [IPv4Address("TCP", f"10.1.2.{n}", 40000) for n in range(20)]
        for client in clients[:3]:
            Connection(self.site, client).ask()
        refused = Connection(self.site, clients[3])
        refused.ask()
        fields = b"\r\nConnection: close\r\nRetry-After: 10\r\n"
        self.assertRegex(refused.heard(), b"HTTP/1.1 503 (?s:.*)" + fields)
        self.assertTrue(refused.transport.disconnecting)
        Connection(self.site, clients[4]).ask("/health")
        self.assertEqual(4, len(self.page.requests))
        for client in clients[5:19]:
            self.assertFalse(Connection(self.site, client).transport.disconnected)
        self.assertTrue(Connection(self.site, clients[19]).transport.disconnected)
        self.assertEqual(19, len(self.site.connections))
        refused.lose()
        self.assertFalse(Connection(self.site, clients[19]).transport.disconnected)

    def test_one_address(self) -> None:
        """Idle connections from one address leave a quarter to all others."""
        self.site.max_connections = 512
        for _ in range(600):
            Connection(self.site)
        self.assertEqual(384, len(self.site.connections))
        others = [Connection(self.site, OTHER) for _ in range(128)]
        others[-1].ask()
        self.page.finish()
        self.assertIn(b"HTTP/1.1 200 ", others[-1].heard())
        for one in others:
            one.lose()
        local = UNIXAddress(None)
        found = [Connection(self.site, local) for _ in range(144)]  # type: ignore[arg-type]
        self.assertFalse([one for one in found if one.transport.disconnected])

    def test_http1(self) -> None:
        """TLS offers HTTP/1 alone, even if HTTP/2 is installed."""
        self.patch(http, "H2_ENABLED", True)
        self.assertEqual([b"http/1.1"], self.site.acceptableProtocols())


class MaxConnectionsTests(SynchronousTestCase):
    def limit(self, files: int) -> None:
        """Limit the open files of this process until the test ends."""
        soft, hard = getrlimit(RLIMIT_NOFILE)
        self.addCleanup(setrlimit, RLIMIT_NOFILE, (soft, hard))
        setrlimit(RLIMIT_NOFILE, (files, hard))

    def test_accounts(self) -> None:
        """With many accounts, the limit of open files is raised if possible."""
        book = logbook(self)
        for soft, enough in ((292, 592), (1192, 1192)):
            self.limit(soft)
            self.assertEqual(100, connection_limit(100, 51))
            self.assertEqual(enough, getrlimit(RLIMIT_NOFILE)[0])
        self.assertEqual([], book.lines())
        hard = getrlimit(RLIMIT_NOFILE)[1]
        self.assertEqual(hard - 198, connection_limit(hard, 2))

    def test_no_room(self) -> None:
        """With too few open files, the limit is lower with a warning, but not 0."""
        for files, room in ((292, 100), (193, 1), (191, 1)):
            book = logbook(self)
            self.limit(files)
            self.assertEqual(
                [1, room], [connection_limit(wanted, 1) for wanted in (1, room)]
            )
            self.assertEqual([], book.lines()) if files != 191 else book.events.clear()
            self.assertEqual(room, connection_limit(101, 1))
            words = f"101, but {files} open files allow only {room}"
            self.assertEqual([f"warning MAX_CONNECTIONS is {words}"], book.lines())

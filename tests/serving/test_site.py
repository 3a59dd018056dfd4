"""The server's limits, and its stop: it waits for requests under way, for a while."""

import gc
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

from twisted.internet.address import IPv4Address
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

    def assert_quiet(self) -> None:
        """Assert that only deadlines of responses are left, and no error is logged."""
        gc.collect()
        deadlines = {channel._deadline for channel in self.site.connections}
        self.assertLessEqual(set(self.clock.getDelayedCalls()), deadlines)
        self.assertEqual([], self.flushLoggedErrors())

    def test_idle(self) -> None:
        """Without requests, a stop waits a turn: for what TLS may still buffer."""
        self.successResultOf(self.site.drain(self.clock))
        Connection(self.site)
        for _ in range(2):
            drained = self.site.drain(self.clock)
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
            drained = self.site.drain(self.clock)
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

    def test_afterwards(self) -> None:
        """Requests after the stop, on open connections, raise no error."""
        for late in (False, True):
            connection = self.request()
            drained = self.site.drain(self.clock)
            if late:
                self.clock.advance(5)
            self.page.finish()
            self.clock.advance(0.02)
            self.successResultOf(drained)
            for _ in range(2):
                connection.ask()
                self.page.finish()
            self.assert_quiet()

    def test_start(self) -> None:
        """The start and the stop of the server log nothing."""
        book = logbook(self)
        self.site.doStart()
        self.site.doStop()
        self.assertEqual([], book.lines(LogLevel.debug))

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


class RoomTests(SynchronousTestCase):
    """A site for three connections, with one page."""

    def setUp(self) -> None:
        self.page = Waiting()
        self.site = BoundedSite(self.page, Clock(), max_connections=3)
        self.site.timeOut = None

    def connected(self, *hosts: int) -> list[Connection]:
        """Return a connection from each of these addresses."""
        return [
            Connection(self.site, IPv4Address("TCP", f"10.0.0.{host}", 40000))
            for host in hosts
        ]

    def dropped(self, *connections: Connection) -> list[bool]:
        """Return for each connection whether it has been aborted."""
        return [connection.transport.disconnected for connection in connections]

    def test_greedy(self) -> None:
        """A full site closes the oldest idle connection of the host with most."""
        clients = self.connected(1, 2, 2)
        new = self.connected(3)
        self.assertEqual([False, True, False, False], self.dropped(*clients, *new))
        new[0].ask()
        self.page.finish()
        self.assertIn(b"done", new[0].heard())
        self.assertEqual(3, len(self.site.connections))

    def test_under_way(self) -> None:
        """A client that waits for or receives a response keeps its connection."""
        asking, taking, idle = self.connected(1, 1, 2)
        for client in (taking, idle):
            client.ask()
            self.page.finish()
        asking.ask()
        self.patch(taking.channel, "unsent_bytes", lambda: 1)
        self.connected(3)
        self.assertEqual([False, False, True], self.dropped(asking, taking, idle))
        self.patch(taking.channel, "unsent_bytes", lambda: 0)
        self.connected(4)
        self.assertEqual([False, True], self.dropped(asking, taking))

    def test_trickling(self) -> None:
        """An incomplete request does not keep its connection open."""
        [client] = self.connected(1)
        client.send(b"GET / HTTP/1.1\r\nHost:")
        self.connected(1, 1, 2)
        self.assertEqual([True], self.dropped(client))

    def test_nobody_idle(self) -> None:
        """If none is idle, clients within the reserve get 503, others no connection."""
        for client in self.connected(1, 1, 1):
            client.ask()
        [refused] = self.connected(2)
        refused.ask()
        fields = b"\r\nConnection: close\r\nRetry-After: 10\r\n"
        self.assertRegex(refused.heard(), b"HTTP/1.1 503 (?s:.*)" + fields)
        self.assertTrue(refused.transport.disconnecting)
        self.connected(2)[0].ask("/health")
        self.assertEqual(4, len(self.page.requests))
        for _ in range(15):
            for client in self.connected(3):
                self.patch(client.channel, "unsent_bytes", lambda: 1)
        self.assertEqual([True], self.dropped(*self.connected(4)))
        self.assertEqual(19, len(self.site.connections))

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
        for soft, enough in ((292, 442), (1192, 1192)):
            self.limit(soft)
            self.assertEqual(100, connection_limit(100, 51))
            self.assertEqual(enough, getrlimit(RLIMIT_NOFILE)[0])
        self.assertEqual([], book.lines())
        hard = getrlimit(RLIMIT_NOFILE)[1]
        self.assertEqual(hard - 195, connection_limit(hard, 2))

    def test_no_room(self) -> None:
        """With too few open files, the limit is lower with a warning, but not 0."""
        for files, room in ((292, 100), (193, 1), (191, 1)):
            book = logbook(self)
            self.limit(files)
            self.assertEqual([1, room], [connection_limit(1), connection_limit(room)])
            self.assertEqual([], book.lines()) if files != 191 else book.events.clear()
            self.assertEqual(room, connection_limit(101))
            words = f"{files} open files allow only {room}"
            words = f"101, but {files} open files allow only {room}"
            self.assertEqual([f"warning MAX_CONNECTIONS is {words}"], book.lines())

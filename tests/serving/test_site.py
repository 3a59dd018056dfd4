"""The server as it ends: requests under way are finished, within reason."""

import gc
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

from twisted.internet.task import Clock
from twisted.logger import LogLevel
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.serving.site import GRACE, OTHER_FILES, BoundedSite, max_connections
from tests.logbook import logbook
from tests.web.connection import Connection


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
        """No timer is left, and nothing went wrong behind our back."""
        gc.collect()
        self.assertEqual([], self.clock.getDelayedCalls())
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

    def test_no_room(self) -> None:
        """Less, with a warning, where open files are scarce; never none at all."""
        for files, room in ((OTHER_FILES + 100, 100), (OTHER_FILES - 1, 1)):
            book = logbook(self)
            self.limit(files)
            self.assertEqual(room, max_connections(101))
            self.assertEqual(
                [
                    f"warning MAX_CONNECTIONS is 101, but {files} open files leave room"
                    f" for {room}"
                ],
                book.lines(),
            )

"""Values that are cached for a second, and lists that wait for their clients."""

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import ALL_ACCOUNTS
from api_exporter.serving.site import BoundedSite
from api_exporter.web import context
from api_exporter.web.context import MAX_WAIT_SECONDS, STALLED_SECONDS, TTL, TTLCache
from tests.logbook import logbook
from tests.parts import DelayedCompute
from tests.web.connection import CLIENT, Connection, Full
from tests.web.test_discovery_accounts import Knowing, several
from tests.web.watched import Watched


class TTLCacheTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.made: list[str] = []
        self.cache = TTLCache[int](self.clock.seconds)

    def get(self, key: str) -> int:
        def make() -> int:
            self.made.append(key)
            return len(self.made)

        return self.cache.get(key, make)

    def test_life(self) -> None:
        self.assertEqual([1, 1, 2], [self.get("a"), self.get("a"), self.get("b")])
        self.clock.advance(0.9 * TTL)
        self.assertEqual([1, 2], [self.get("a"), self.get("b")])
        self.clock.advance(0.1 * TTL)
        self.assertEqual([3, 3], [self.get("a"), self.get("a")])
        self.clock.rightNow -= 500  # a clock that jumps back freezes nothing
        self.assertEqual(4, self.get("a"))

    def test_old(self) -> None:
        """Expired values are removed."""
        for number in range(100):
            self.get(f"a{number}")
            self.clock.advance(TTL / 4)
        self.assertEqual(4, len(self.cache._values))


OTHER = IPv4Address("TCP", "10.9.9.9", 40000)
FULL = b"too many responses are pending: retry later"


class SlowTransport(Full):
    """The transport of a client that reads when the test says so."""

    def abortConnection(self) -> None:
        self.disconnecting = True


class SlowConnection(Connection):
    """A connection whose client sends a request and does not read the response."""

    def __init__(
        self, site: BoundedSite, path: str = "/sd?port=1", client: IPv4Address = CLIENT
    ) -> None:
        super().__init__(site, client, SlowTransport(peerAddress=client))
        self.ask(path)

    @property
    def aborted(self) -> bool:
        aborted: bool = self.transport.disconnecting
        return aborted

    def read(self) -> None:
        """Read the next slice."""
        producer = self.transport.producer
        if producer is not None:
            producer.resumeProducing()


class ListsTestCase(SynchronousTestCase):
    peers = 20

    def setUp(self) -> None:
        self.compute = DelayedCompute()
        self.watched = Watched(compute=self.compute, peers=self.peers).start()
        self.site = BoundedSite(self.watched.tree, self.watched.clock)
        self.book = logbook(self)
        self.addCleanup(self.finish)

    def finish(self) -> None:
        """Compute all lists that wait: an abandoned coroutine would release a lock."""
        while self.compute.waiting:
            self.compute.go()

    def slow(self, client: IPv4Address = CLIENT) -> SlowConnection:
        """Connect a client, and compute its list."""
        connection = SlowConnection(self.site, client=client)
        self.compute.go()
        return connection

    def aborted(self) -> float | None:
        registry = self.watched.context.process.registry
        return registry.get_sample_value("api_exporter_target_lists_aborted_total")


class ListsTests(ListsTestCase):
    def test_one_at_a_time(self) -> None:
        """One response is computed at a time, so a refresh waits for one at most."""
        for _ in range(3):
            SlowConnection(self.site)
        for _ in range(3):
            self.assertEqual(1, len(self.compute.waiting))
            self.compute.go()
        self.assertEqual([], self.compute.waiting)

    def test_turns(self) -> None:
        """Many requests for one account do not delay those for another one."""
        networks = {name: Watched(name=name).start() for name in "ab"}
        pages = Knowing(several(networks, self.watched.context), ALL_ACCOUNTS)
        site = BoundedSite(pages, self.watched.clock)
        many = [SlowConnection(site, "/sd?port=1&account=a") for _ in range(100)]
        one = SlowConnection(site, "/sd?port=1&account=b")
        for _ in range(2):
            self.compute.go()
        self.assertIn(b" 200 OK", one.heard())
        self.assertEqual(1, sum(b" 200 OK" in each.heard() for each in many))

    def test_stalled(self) -> None:
        """Above the limit, a client that does not read is disconnected."""
        self.patch(context, "MAX_LIST_BYTES", 1)
        first, second = self.slow(), self.slow()
        self.watched.advance(STALLED_SECONDS - 1)
        self.assertEqual((False, b""), (first.aborted, second.heard()))
        self.watched.advance(1)
        self.assertEqual((True, False), (first.aborted, second.aborted))
        self.assertIn(b" 200 OK", second.heard())
        self.assertEqual(1, self.aborted())
        [line] = [line for line in self.book.lines() if "does not read" in line]
        self.assertRegex(line, "^info .* client=10.1.2.3 bytes_left=0$")

    def test_own(self) -> None:
        """The client's own response goes first, then the oldest one."""
        first = self.slow()
        _, _, rest = first.heard().partition(b"Content-Length: ")
        self.patch(context, "MAX_LIST_BYTES", 3 * int(rest.split()[0]))
        first.lose()
        clients = [self.slow(client) for client in (CLIENT, OTHER, OTHER)]
        self.assertTrue(all(b" 200 OK" in one.heard() for one in clients))  # just fit
        expected = [[1], [0, 1]]
        for client, numbers in zip((OTHER, CLIENT), expected, strict=True):
            self.slow(client)
            self.watched.advance(STALLED_SECONDS)
            aborted = [n for n, one in enumerate(clients) if one.aborted]
            self.assertEqual(numbers, aborted)

    def test_left(self) -> None:
        """A client that leaves while its list waits frees its place."""
        self.patch(context, "MAX_LIST_BYTES", 1)
        first, second = self.slow(), self.slow()
        second.lose()
        third = SlowConnection(self.site)
        first.lose()
        self.compute.go()
        self.assertIn(b" 200 OK", third.heard())


class LongListTests(ListsTestCase):
    peers = 4000

    def test_read(self) -> None:
        """A slow client is not disconnected; after ten seconds others get 503."""
        self.patch(context, "MAX_LIST_BYTES", 1)
        first, second = self.slow(), self.slow()
        for _ in range(int(MAX_WAIT_SECONDS / 2)):
            self.assertEqual(b"", second.heard())
            self.watched.advance(2)
            first.read()
        self.watched.advance(1)
        self.assertFalse(first.aborted)
        self.assertRegex(second.heard(), b"(?s) 503 .*" + FULL)
        self.assertEqual(0, self.aborted())

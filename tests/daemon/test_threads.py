"""Threads that do not delay the end of the process."""

import gc
from collections.abc import Callable
from functools import partial
from queue import Queue
from socket import AF_INET, AI_NUMERICHOST, SOCK_STREAM, gaierror
from threading import Event, Thread, current_thread

from incremental import Version
from twisted._version import __version__ as version
from twisted.internet._resolver import GAIResolver
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.test.test_resolver import ResultHolder
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from api_exporter.daemon import threads
from api_exporter.daemon.threads import _look_up, daemon_threads, install_name_resolver
from api_exporter.refresh.compute import ComputeThread
from tests.memory_reactor import MemoryReactorClock


class Reactor(MemoryReactorClock):
    def callFromThread(self, call: Callable[..., object], *args: object) -> None:  # noqa: N802
        call(*args)


class LoopReactor(MemoryReactorClock):
    """Keeps the calls from threads."""

    def __init__(self) -> None:
        super().__init__()
        self.from_threads: Queue[Callable[[], object]] = Queue()

    def callFromThread(self, call: Callable[..., object], *args: object) -> None:  # noqa: N802
        self.from_threads.put(partial(call, *args))


class NoThread(Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


class ThreadsTests(SynchronousTestCase):
    def test_daemons(self) -> None:
        """The threads are daemon threads."""
        threads = daemon_threads(1, "test")
        self.addCleanup(threads.stop)
        found: Queue[bool] = Queue()
        threads.callInThread(lambda: found.put(current_thread().daemon))
        self.assertTrue(found.get(timeout=60))

    def test_names(self) -> None:
        """The reactor resolves names in the threads; the first name starts them."""
        reactor = MemoryReactorClock()
        threads = install_name_resolver(reactor)  # type: ignore[arg-type]
        self.addCleanup(threads.stop)
        self.assertIsInstance(reactor.nameResolver, GAIResolver)
        self.assertEqual([], threads.threads)
        self.assertRaises(gaierror, _look_up, "300.0.0.1", 443, flags=AI_NUMERICHOST)

    def test_no_room(self) -> None:
        """Without room for a thread, work fails and names have no addresses."""
        reactor = Reactor()
        pool = self.without_room(daemon_threads(1, "test"))
        computed = ComputeThread(reactor, pool)(len, "")  # type: ignore[arg-type]
        assert isinstance(computed, Deferred)
        self.failureResultOf(computed, MemoryError)
        if version < Version("Twisted", 25, 5, 0):
            raise SkipTest("this Twisted ends no look-up without a thread")
        self.without_room(install_name_resolver(reactor))  # type: ignore[arg-type]
        receiver = ResultHolder(self)
        reactor.nameResolver.resolveHostName(receiver, "netbird.example")
        self.assertEqual((True, []), (receiver._ended, receiver._addresses))

    def without_room(self, pool: ThreadPool) -> ThreadPool:
        self.addCleanup(pool.stop)
        pool.threadFactory = NoThread
        return pool


class NamesTests(SynchronousTestCase):
    """Several calls for names before the name server answers."""

    def setUp(self) -> None:
        self.reactor = LoopReactor()
        self.pool = install_name_resolver(self.reactor)  # type: ignore[arg-type]
        self.addCleanup(self.pool.stop)
        self.patch(threads, "getaddrinfo", self.look_up)
        self.answers = Event()
        self.asked: list[str] = []

    def look_up(self, host: str, port: int, *_: int) -> list[tuple[object, ...]]:
        self.asked.append(host)
        self.answers.wait(60)
        if host == "unknown.example":
            raise gaierror
        if host == "broken.example":
            raise UnicodeError
        return [(AF_INET, SOCK_STREAM, 6, "", ("192.0.2.7", port))]

    def resolve(
        self, host: str, port: int = 443, types: list[type[IAddress]] | None = None
    ) -> ResultHolder:
        receiver = ResultHolder(self)
        self.reactor.nameResolver.resolveHostName(receiver, host, port, types)
        return receiver

    def results(self, *receivers: ResultHolder) -> list[list[IAddress]]:
        """Return the addresses of each receiver after the name server has answered."""
        self.answers.set()
        while not all(receiver._ended for receiver in receivers):
            self.reactor.from_threads.get(timeout=60)()
        return [receiver._addresses for receiver in receivers]

    def test_shared(self) -> None:
        """All get the result of one look-up; a later call begins another one."""
        receivers = [self.resolve("netbird.example") for _ in range(9)]
        address = IPv4Address("TCP", "192.0.2.7", 443)
        self.assertEqual([[address]] * 9, self.results(*receivers))
        self.assertEqual(["netbird.example"], self.asked)
        self.assertEqual([[address]], self.results(self.resolve("netbird.example")))
        self.assertEqual(["netbird.example"] * 2, self.asked)

    def test_again(self) -> None:
        """A receiver may ask again as soon as it has the result."""
        receiver = AsksAgain(self)
        self.reactor.nameResolver.resolveHostName(receiver, "netbird.example", 443)
        self.results(receiver)
        self.results(*receiver.again)
        self.assertEqual(["netbird.example"] * 2, self.asked)

    def test_failed(self) -> None:
        """A failure reaches all."""
        receivers = [self.resolve("unknown.example") for _ in range(9)]
        self.assertEqual([[]] * 9, self.results(*receivers))
        self.assertEqual(["unknown.example"], self.asked)

    def test_different(self) -> None:
        """Other names, ports and types of addresses have look-ups of their own."""
        receivers = (
            self.resolve("netbird.example"),
            self.resolve("netbird.example", 80),
            self.resolve("netbird.example", 80, [IPv4Address]),
            self.resolve("unknown.example"),
        )
        address, other = (IPv4Address("TCP", "192.0.2.7", port) for port in (443, 80))
        expected = [[address], [other], [other], []]
        self.assertEqual(expected, self.results(*receivers))
        self.assertEqual(4, len(self.asked))

    def test_broken(self) -> None:
        """A look-up that breaks does not keep the next one away."""
        self.pool.adjustPoolsize(0, 1)
        for _ in range(2):
            self.resolve("broken.example")
            self.results(self.resolve("netbird.example"))
            gc.collect()
            self.assertEqual(1, len(self.flushLoggedErrors(UnicodeError)))
        self.assertEqual(["broken.example", "netbird.example"] * 2, self.asked)


class AsksAgain(ResultHolder):
    def __init__(self, test: NamesTests) -> None:
        super().__init__(test)
        self.again: list[ResultHolder] = []

    def resolutionComplete(self) -> None:  # noqa: N802 - Twisted's name
        super().resolutionComplete()
        self.again.append(self._testCase.resolve("netbird.example"))

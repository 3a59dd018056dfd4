"""Threads that do not delay the end of the process."""

from collections.abc import Callable
from queue import Queue
from socket import AI_NUMERICHOST, gaierror
from threading import Thread, current_thread

from incremental import Version
from twisted._version import __version__ as version
from twisted.internet._resolver import GAIResolver
from twisted.internet.defer import Deferred
from twisted.internet.test.test_resolver import ResultHolder
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from api_exporter.daemon.threads import _look_up, daemon_threads, install_name_resolver
from api_exporter.refresh.compute import ComputeThread
from tests.memory_reactor import MemoryReactorClock


class Reactor(MemoryReactorClock):
    def callFromThread(self, call: Callable[..., object], *args: object) -> None:  # noqa: N802
        call(*args)


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

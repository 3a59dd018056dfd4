"""Threads that keep no process from its end."""

from queue import Queue
from threading import current_thread

from twisted.internet._resolver import GAIResolver
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon.threads import daemon_threads, own_threads


class ThreadsTests(SynchronousTestCase):
    def test_daemons(self) -> None:
        """The end of the process waits for none of them."""
        threads = daemon_threads(1, "test")
        self.addCleanup(threads.stop)
        found: Queue[bool] = Queue()
        threads.callInThread(lambda: found.put(current_thread().daemon))
        self.assertTrue(found.get(timeout=60))

    def test_names(self) -> None:
        """The reactor resolves names in them, and begins none before the first."""
        reactor = MemoryReactorClock()
        threads = own_threads(reactor)  # type: ignore[arg-type]
        self.addCleanup(threads.stop)
        self.assertIsInstance(reactor.nameResolver, GAIResolver)
        self.assertEqual([], threads.threads)

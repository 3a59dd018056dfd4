"""Threads that do not delay the end of the process."""

from queue import Queue
from threading import current_thread

from twisted.internet._resolver import GAIResolver
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon.threads import daemon_threads, install_name_resolver


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

"""What all threads are doing."""

import sys
import threading

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling import threads
from tests.profiling import reader
from tests.profiling.in_thread import at_once


class ProfileTests(SynchronousTestCase):
    def test_profile(self) -> None:
        """Every thread is there once, with its name and its stack, at once."""
        end = threading.Event()
        worker = threading.Thread(target=end.wait, name="worker")
        worker.start()
        self.addCleanup(worker.join)
        self.addCleanup(end.set)
        work = threads.profile(Clock(), at_once, 30, 1_700_000_000)
        read = reader.read(self.successResultOf(Deferred.fromCoroutine(work)))
        self.assertEqual([("goroutine", "count")], read.types)
        self.assertEqual(1_700_000_000 * 10**9, read.started)
        stacks = {label["thread"]: stack for stack, _, label in read.samples}
        self.assertIn("threading.Event.wait", [f.function for f in stacks["worker"]])
        self.assertIn(
            f"{__name__}.ProfileTests.test_profile",
            [f.function for f in stacks[threading.current_thread().name]],
        )
        self.assertEqual({(1,)}, {values for _, values, _ in read.samples})

    def test_unknown(self) -> None:
        """A thread that Python did not start has a stack and no name."""
        (sample,) = threads.samples([], {-1: sys._getframe()})
        self.assertEqual("?", sample.thread)

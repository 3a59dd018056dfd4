"""The CPU profile of this very process."""

import sys
import threading
import time
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling import cpu
from tests.profiling import reader
from tests.profiling.in_thread import at_once

NOW = 1_700_000_000


def spin(nanoseconds: int) -> None:
    """Use that much CPU time."""
    until = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < until:
        pass


class ProfileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.switch_interval = sys.getswitchinterval()

    def start(self) -> Deferred[bytes]:
        return Deferred.fromCoroutine(cpu.profile(self.clock, at_once, 3, NOW))

    def assertStopped(self) -> None:  # noqa: N802 - as unittest names such things
        """Nothing is left of the profile."""
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual(self.switch_interval, sys.getswitchinterval())
        self.assertNotIn("cpu-profiler", [t.name for t in threading.enumerate()])

    def test_profile(self) -> None:
        """After its time it says where the CPU time of that time went."""
        profile = self.start()
        before = time.process_time_ns()
        spin(300_000_000)
        self.assertNoResult(profile)
        self.clock.advance(3)
        read = reader.read(self.successResultOf(profile))
        used = time.process_time_ns() - before
        self.assertStopped()
        self.assertEqual([("samples", "count"), ("cpu", "nanoseconds")], read.types)
        self.assertEqual(10_000_000, read.period)
        self.assertEqual(NOW * 10**9, read.started)
        self.assertGreater(read.duration, 250_000_000)
        total = sum(values[1] for _, values, _ in read.samples)
        self.assertGreater(read.by_leaf()[f"{__name__}.spin"], 0.8 * total)
        self.assertLess(abs(total - used), 0.1 * used)

    def test_worker_threads(self) -> None:
        """The time of another thread is charged to it, under its name."""
        worker = threading.Thread(target=spin, args=(200_000_000,), name="worker")
        profile = self.start()
        worker.start()
        worker.join()
        self.clock.advance(3)
        read = reader.read(self.successResultOf(profile))
        of_worker = [
            v[1] for _, v, label in read.samples if label["thread"] == "worker"
        ]
        self.assertGreater(sum(of_worker), 150_000_000)

    def test_cancelled(self) -> None:
        """A profile that nobody waits for any more ends at once."""
        profile = self.start()
        profile.cancel()
        self.failureResultOf(profile, CancelledError)
        self.assertStopped()


class ClocksTests(SynchronousTestCase):
    def test_own(self) -> None:
        """This thread's clock is the one that it reads itself."""
        before = time.thread_time_ns()
        read = cpu.clocks()[threading.current_thread()]
        self.assertLessEqual(before, read)
        self.assertLessEqual(read, time.thread_time_ns())

    def test_ended(self) -> None:
        """A thread that has ended, but is not yet taken off the list, has no clock."""
        ended = threading.Thread(target=int)
        ended.start()
        ended.join()
        assert ended.ident is not None
        # Python is done with a thread a moment before the kernel is.
        task = Path(f"/proc/self/task/{ended.native_id}")
        for _ in range(5000):
            if not task.exists():
                break
            threading.Event().wait(0.001)
        active: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
        active[ended.ident] = ended
        self.addCleanup(active.pop, ended.ident)
        self.assertNotIn(ended, cpu.clocks())

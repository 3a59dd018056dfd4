"""The CPU profile of the test process."""

import sys
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling import cpu
from api_exporter.profiling.cpu import Charges
from api_exporter.profiling.pprof import Frame, Profile, encode
from tests.profiling import reader

NOW = 1_700_000_000

WORK = (Frame("work", "file.py", 1),)
WAIT = (Frame("wait", "file.py", 2),)


def spin(nanoseconds: int) -> None:
    """Use that much CPU time."""
    until = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < until:
        pass


class ProfileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.switch_interval = sys.getswitchinterval()

    def start(self) -> Deferred[Callable[[], Profile]]:
        return Deferred.fromCoroutine(cpu.profile(self.clock, 3))

    def read(self, profile: Deferred[Callable[[], Profile]]) -> reader.Read:
        return reader.read(encode(self.successResultOf(profile)(), NOW))

    def assertStopped(self) -> None:  # noqa: N802 - as unittest names such things
        """Assert that no timer, no thread and no setting of the profile is left."""
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual(self.switch_interval, sys.getswitchinterval())
        self.assertNotIn("cpu-profiler", [t.name for t in threading.enumerate()])

    def test_profile(self) -> None:
        """The profile shows where CPU time was used. A cancelled one ends at once."""
        profile = self.start()
        self.assertAlmostEqual(0.0002, sys.getswitchinterval())
        before = time.process_time_ns()
        spin(300_000_000)
        self.assertNoResult(profile)
        self.clock.advance(3)
        read = self.read(profile)
        used = time.process_time_ns() - before
        self.assertStopped()
        self.assertEqual([("samples", "count"), ("cpu", "nanoseconds")], read.types)
        self.assertEqual((10_000_000, NOW * 10**9), (read.period, read.started))
        self.assertGreater(read.duration, 250_000_000)
        self.assertLess(read.duration, 600_000_000_000)
        for name in {label["thread"] for *_, label in read.samples}:
            looks = [v[0] for _, v, label in read.samples if label["thread"] == name]
            self.assertLess(sum(looks), read.duration / 5_000_000 + 2)
        total = sum(values[1] for _, values, _ in read.samples)
        self.assertGreater(read.by_leaf()[f"{__name__}.spin"], 0.5 * total)
        self.assertLess(abs(total - used), 0.1 * used)
        profile = self.start()
        profile.cancel()
        self.failureResultOf(profile, CancelledError)
        self.assertStopped()

    def test_worker_threads(self) -> None:
        """CPU time of another thread is charged to it, under its name."""
        worker = threading.Thread(target=spin, args=(200_000_000,), name="worker")
        profile = self.start()
        worker.start()
        worker.join()
        self.clock.advance(3)
        samples = self.read(profile).samples
        charged = [v[1] for _, v, label in samples if label["thread"] == "worker"]
        self.assertGreater(sum(charged), 150_000_000)


class ChargesTests(SynchronousTestCase):
    def test_charges(self) -> None:
        """CPU time since the last sample is charged to the last running stack, or to
        where the thread waits. A new thread is charged with all of its time.
        """
        thread = threading.Thread(name="worker")
        running, waiting = (WORK, 1), (WAIT, 0)
        for name, before, samples, expected in (
            ("twice", 1000, [(1010, running), (1050, running)], {WORK: (2, 50)}),
            ("idle", 1000, [(1000, waiting)], {}),
            ("blocked", 1000, [(1010, running), (1015, waiting)], {WORK: (2, 15)}),
            ("never running", 1000, [(1010, waiting)], {WAIT: (1, 10)}),
            ("new", None, [(7, running)], {WORK: (1, 7)}),
            ("ended", 1000, [(1010, (WORK, None))], {WORK: (1, 10)}),
        ):
            charges = Charges({} if before is None else {thread: before})
            for now, (stack, step) in samples:
                clocks = {thread: now}
                after = {} if step is None else {thread: now + step}
                found = dict.fromkeys(charges.busy_threads(clocks), stack)
                charges.add(clocks, found, after)
            charged = charges.samples()
            self.assertLessEqual({sample.thread for sample in charged}, {"worker"})
            found_ = {sample.stack: sample.values for sample in charged}
            self.assertEqual(expected, found_, name)


class IntervalsTests(SynchronousTestCase):
    def test_uneven(self) -> None:
        """Intervals are spread evenly around their mean of 10 ms."""
        for place, seconds in enumerate(sorted(islice(cpu.intervals(), 1000))):
            self.assertLess(abs(0.005 + place / 1e5 - seconds), 5e-5)


class ClocksTests(SynchronousTestCase):
    def test_own(self) -> None:
        """The clock of the current thread is the one that the thread reads itself."""
        before = time.thread_time_ns()
        read = cpu.read_clocks()[threading.current_thread()]
        self.assertLessEqual(before, read)
        self.assertLessEqual(read, time.thread_time_ns())

    def test_others(self) -> None:
        """A thread that has not started, or has ended, has no clock."""
        ended = threading.Thread(target=int)
        ended.start()
        ended.join()
        # Python's thread ends a moment before the kernel's.
        task = Path(f"/proc/self/task/{ended.native_id}")
        for _ in range(5000):
            if not task.exists():
                break
            threading.Event().wait(0.001)
        current = threading.current_thread()
        listed = [threading.Thread(), ended, current]
        self.patch(threading, "enumerate", lambda: listed)
        self.assertEqual([current], [*cpu.read_clocks()])

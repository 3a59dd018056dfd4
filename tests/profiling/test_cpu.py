"""The CPU profile of the test process."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling import cpu
from api_exporter.profiling.cpu import Charges
from api_exporter.profiling.pprof import Frame, Profile, Stack, encode
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
        """The profile shows where CPU time was used."""
        profile = self.start()
        before = time.process_time_ns()
        spin(300_000_000)
        self.assertNoResult(profile)
        self.clock.advance(3)
        read = self.read(profile)
        used = time.process_time_ns() - before
        self.assertStopped()
        self.assertEqual([("samples", "count"), ("cpu", "nanoseconds")], read.types)
        self.assertEqual(10_000_000, read.period)
        self.assertEqual(NOW * 10**9, read.started)
        self.assertGreater(read.duration, 250_000_000)
        total = sum(values[1] for _, values, _ in read.samples)
        self.assertGreater(read.by_leaf()[f"{__name__}.spin"], 0.5 * total)
        self.assertLess(abs(total - used), 0.1 * used)

    def test_worker_threads(self) -> None:
        """CPU time of another thread is charged to it, under its name."""
        worker = threading.Thread(target=spin, args=(200_000_000,), name="worker")
        profile = self.start()
        worker.start()
        worker.join()
        self.clock.advance(3)
        read = self.read(profile)
        of_worker = [
            v[1] for _, v, label in read.samples if label["thread"] == "worker"
        ]
        self.assertGreater(sum(of_worker), 150_000_000)

    def test_cancelled(self) -> None:
        """A cancelled profile ends at once."""
        profile = self.start()
        profile.cancel()
        self.failureResultOf(profile, CancelledError)
        self.assertStopped()


class ChargesTests(SynchronousTestCase):
    """Charges of a thread that is not started: its clock is an argument."""

    def setUp(self) -> None:
        self.thread = threading.Thread(name="worker")
        self.charges = Charges({self.thread: 1000})

    def add(self, now: int, where: Stack, *, running: bool) -> None:
        clocks = {self.thread: now}
        found = dict.fromkeys(self.charges.busy_threads(clocks), where)
        self.charges.add(clocks, found, {self.thread: now + running})

    def found(self) -> dict[Stack, tuple[int, ...]]:
        samples = self.charges.samples()
        self.assertLessEqual({sample.thread for sample in samples}, {"worker"})
        return {sample.stack: sample.values for sample in samples}

    def test_difference(self) -> None:
        """A stack is charged with the CPU time since the previous sample."""
        self.add(1010, WORK, running=True)
        self.add(1050, WORK, running=True)
        self.assertEqual({WORK: (2, 50)}, self.found())

    def test_idle(self) -> None:
        """A thread without CPU time is not sampled."""
        self.add(1000, WAIT, running=False)
        self.assertEqual({}, self.found())

    def test_blocked(self) -> None:
        """CPU time of a waiting thread is charged to its last running stack."""
        self.add(1010, WORK, running=True)
        self.add(1015, WAIT, running=False)
        self.assertEqual({WORK: (2, 15)}, self.found())

    def test_never_seen_running(self) -> None:
        """CPU time of a thread never sampled running is charged where it waits."""
        self.add(1010, WAIT, running=False)
        self.assertEqual({WAIT: (1, 10)}, self.found())

    def test_new_thread(self) -> None:
        """A new thread is charged with all of its CPU time."""
        self.charges = Charges({})
        self.add(7, WORK, running=True)
        self.assertEqual({WORK: (1, 7)}, self.found())

    def test_ended(self) -> None:
        """The CPU time of a thread that ends after a sample is charged."""
        self.charges.add({self.thread: 1010}, {self.thread: WORK}, {})
        self.assertEqual({WORK: (1, 10)}, self.found())


class ClocksTests(SynchronousTestCase):
    def test_own(self) -> None:
        """The clock of the current thread is the one that the thread reads itself."""
        before = time.thread_time_ns()
        read = cpu.read_clocks()[threading.current_thread()]
        self.assertLessEqual(before, read)
        self.assertLessEqual(read, time.thread_time_ns())

    def test_ended(self) -> None:
        """A thread that has ended, but is still listed, has no clock."""
        ended = threading.Thread(target=int)
        ended.start()
        ended.join()
        assert ended.ident is not None
        # Python's thread ends a moment before the kernel's.
        task = Path(f"/proc/self/task/{ended.native_id}")
        for _ in range(5000):
            if not task.exists():
                break
            threading.Event().wait(0.001)
        active: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
        active[ended.ident] = ended
        self.addCleanup(active.pop, ended.ident)
        self.assertNotIn(ended, cpu.read_clocks())

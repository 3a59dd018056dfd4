"""Recorders of profiles in the test process."""

import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling.pprof import Frame, Stack
from api_exporter.profiling.recorders import (
    MAX_DEPTH,
    Encode,
    read_clocks,
    record_cpu,
    record_heap,
    stack,
    sum_blocks,
)
from tests.profiling import reader

NOW = 1_700_000_000
SIZE = 1_000_000


def spin(nanoseconds: int) -> None:
    """Use that much CPU time."""
    until = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < until:
        pass


def hold() -> bytearray:
    return bytearray(SIZE)


LINE = hold.__code__.co_firstlineno + 1
HOLDING = Frame(f"profiling/test_recorders.py:{LINE}", __file__, LINE)


class RecorderTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.switch_interval = sys.getswitchinterval()

    def start(
        self, record: Callable[[IReactorTime, int], Awaitable[Encode]], seconds: int
    ) -> Deferred[Encode]:
        async def run() -> Encode:
            return await record(self.clock, seconds)

        return Deferred.fromCoroutine(run())

    def read(self, profile: Deferred[Encode]) -> reader.Read:
        return reader.read(self.successResultOf(profile)(NOW))

    def assertStopped(self) -> None:  # noqa: N802 - as unittest names such things
        """Assert that no timer, no thread and no setting of the profile is left."""
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual(self.switch_interval, sys.getswitchinterval())
        self.assertNotIn("cpu-profiler", [t.name for t in threading.enumerate()])
        self.assertFalse(tracemalloc.is_tracing())


class CpuTests(RecorderTestCase):
    def test_profile(self) -> None:
        """The profile shows where CPU time was used. A cancelled one ends at once."""
        profile = self.start(record_cpu, 3)
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
        total = sum(values[1] for _, values in read.samples)
        self.assertGreater(read.by_leaf()[f"{__name__}.spin"], 0.5 * total)
        self.assertLess(abs(total - used), 0.1 * used)
        self.assertEqual([], [values for _, values in read.samples if values[0] < 1])
        profile = self.start(record_cpu, 3)
        profile.cancel()
        self.failureResultOf(profile, CancelledError)
        self.assertStopped()

    def test_no_room(self) -> None:
        """Without room for its thread a profile fails, and leaves nothing behind."""
        self.addCleanup(sys.setswitchinterval, self.switch_interval)

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        self.patch(threading.Thread, "start", fail)
        self.failureResultOf(self.start(record_cpu, 3), RuntimeError)
        self.assertStopped()

    def test_worker_threads(self) -> None:
        """CPU time of another thread is charged to its stacks, also after its end."""
        worker = threading.Thread(target=spin, args=(200_000_000,))
        profile = self.start(record_cpu, 3)
        worker.start()
        worker.join()
        self.clock.advance(3)
        self.assertGreater(
            self.read(profile).by_leaf()[f"{__name__}.spin"], 150_000_000
        )


class ClocksTests(SynchronousTestCase):
    def test_own(self) -> None:
        """The clock of the current thread is the one that the thread reads itself."""
        before = time.thread_time_ns()
        read = read_clocks()[threading.get_ident()]
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
        listed = [threading.Thread(), ended, threading.current_thread()]
        self.patch(threading, "enumerate", lambda: listed)
        self.assertEqual([threading.get_ident()], [*read_clocks()])

    def test_daemon(self) -> None:
        """The main thread of a forked process, such as a daemon, has a clock."""
        program = (
            "import os, threading\n"
            "from api_exporter.profiling.recorders import read_clocks\n"
            "if child := os.fork():\n"
            "    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
            "os._exit(threading.get_ident() not in read_clocks())"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def here() -> Stack:
    return stack(sys._getframe())


def deep(levels: int) -> Stack:
    return deep(levels - 1) if levels else here()


class StackTests(SynchronousTestCase):
    def test_leaf_first(self) -> None:
        """The running function comes first; a deep stack keeps its leaf."""
        found = here()
        line = here.__code__.co_firstlineno + 1
        self.assertEqual(Frame(f"{__name__}.here", __file__, line), found[0])
        self.assertEqual(f"{__name__}.StackTests.test_leaf_first", found[1].function)
        self.assertEqual((), stack(None))
        bounded = deep(2 * MAX_DEPTH)
        self.assertEqual((MAX_DEPTH, found[0]), (len(bounded), bounded[0]))


class HeapTests(RecorderTestCase):
    def test_window(self) -> None:
        """Live blocks are traced during the profile's time only."""
        profile = self.start(record_heap, 5)
        self.assertTrue(tracemalloc.is_tracing())
        held = hold()
        hold()  # freed at once
        self.clock.advance(5)
        read = self.read(profile)
        space = ("inuse_space", "bytes")
        self.assertEqual([("inuse_objects", "count"), space], read.types)
        self.assertEqual((space, 1), (read.period_type, read.period))
        self.assertEqual((NOW * 10**9, 5 * 10**9), (read.started, read.duration))
        self.assertLess(abs(read.by_leaf()[HOLDING.function] - len(held)), SIZE / 100)
        cancelled = self.start(record_heap, 5)
        cancelled.cancel()
        self.failureResultOf(cancelled, CancelledError)
        self.assertStopped()

    def test_traced_from_the_start(self) -> None:
        """Running tracing continues; its profile is returned at once."""
        tracemalloc.start(3)
        self.addCleanup(tracemalloc.stop)
        held = hold()
        read = self.read(self.start(record_heap, 5))
        self.assertTrue(tracemalloc.is_tracing())
        self.assertEqual(0, read.duration)
        self.assertLess(abs(read.by_leaf()[HOLDING.function] - len(held)), SIZE / 100)

    def test_sums(self) -> None:
        """The profile has the number and the total size of each stack's blocks."""
        here, there = (("/a/b/c.py", 1), ("/a/b/d.py", 2)), (("/a/b/c.py", 3),)
        found = sum_blocks([(0, 10, here, 2), (0, 5, there, 1), (0, 32, here, 2)])
        leaf = Frame("b/c.py:1", "/a/b/c.py", 1)
        caller = Frame("b/d.py:2", "/a/b/d.py", 2)
        other = Frame("b/c.py:3", "/a/b/c.py", 3)
        self.assertEqual({(leaf, caller): [2, 42], (other,): [1, 5]}, found)

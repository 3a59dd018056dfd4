"""The heap profile of the test process."""

import tracemalloc
from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling import heap
from api_exporter.profiling.pprof import Frame, Profile, encode
from tests.profiling import reader

SIZE = 1_000_000

NOW = 1_700_000_000


def hold() -> bytearray:
    return bytearray(SIZE)


LINE = hold.__code__.co_firstlineno + 1
HOLDING = Frame(f"profiling/test_heap.py:{LINE}", __file__, LINE)


class ProfileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()

    def start(self) -> Deferred[Callable[[], Profile]]:
        return Deferred.fromCoroutine(heap.profile(self.clock, 5))

    def read(self, profile: Deferred[Callable[[], Profile]]) -> reader.Read:
        return reader.read(encode(self.successResultOf(profile)(), NOW))

    def test_window(self) -> None:
        """Live blocks are traced during the profile's time only."""
        profile = self.start()
        self.assertTrue(tracemalloc.is_tracing())
        held = hold()
        hold()  # freed at once
        self.clock.advance(5)
        read = self.read(profile)
        space = ("inuse_space", "bytes")
        self.assertEqual([("inuse_objects", "count"), space], read.types)
        self.assertEqual((space, 1), (read.period_type, read.period))
        self.assertEqual("inuse_space", read.default_type)
        self.assertEqual((NOW * 10**9, 5 * 10**9), (read.started, read.duration))
        self.assertEqual(["Live blocks, allocated within 5 seconds."], read.comments)
        self.assertLess(abs(read.by_leaf()[HOLDING.function] - len(held)), SIZE / 100)
        cancelled = self.start()
        cancelled.cancel()
        self.failureResultOf(cancelled, CancelledError)
        self.assertFalse(tracemalloc.is_tracing())
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_traced_from_the_start(self) -> None:
        """Running tracing continues; its profile is returned at once."""
        tracemalloc.start(3)
        self.addCleanup(tracemalloc.stop)
        held = hold()
        read = self.read(self.start())
        self.assertTrue(tracemalloc.is_tracing())
        self.assertEqual(0, read.duration)
        self.assertEqual(["Live blocks, since tracing began."], read.comments)
        self.assertLess(abs(read.by_leaf()[HOLDING.function] - len(held)), SIZE / 100)


class SamplesTests(SynchronousTestCase):
    def test_sums(self) -> None:
        """The profile has the number and the total size of each stack's blocks."""
        here, there = (("/a/b/c.py", 1), ("/a/b/d.py", 2)), (("/a/b/c.py", 3),)
        found = heap.samples([(0, 10, here, 2), (0, 5, there, 1), (0, 32, here, 2)])
        leaf = Frame("b/c.py:1", "/a/b/c.py", 1)
        caller = Frame("b/d.py:2", "/a/b/d.py", 2)
        self.assertEqual(
            [((leaf, caller), (2, 42)), ((Frame("b/c.py:3", "/a/b/c.py", 3),), (1, 5))],
            [(sample.stack, sample.values) for sample in found],
        )

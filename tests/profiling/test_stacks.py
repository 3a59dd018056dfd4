"""Stacks of named lines, and the profile of all threads."""

import sys
import threading

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling import stacks
from api_exporter.profiling.pprof import Frame, Stack, encode
from api_exporter.profiling.stacks import MAX_DEPTH, stack
from tests.profiling import reader


def here(known: dict[Frame, Frame]) -> Stack:
    return stack(sys._getframe(), known)


def deep(levels: int, known: dict[Frame, Frame]) -> Stack:
    return deep(levels - 1, known) if levels else here(known)


class StackTests(SynchronousTestCase):
    def test_leaf_first(self) -> None:
        """The running function comes first, then its caller, each with a line. Equal
        frames of two stacks are one object. A thread without a frame has an empty
        stack; a very deep one keeps its frames next to the leaf.
        """
        known: dict[Frame, Frame] = {}
        found, other = here(known), here(known)
        line = here.__code__.co_firstlineno + 1
        self.assertEqual(Frame(f"{__name__}.here", __file__, line), found[0])
        self.assertEqual(f"{__name__}.StackTests.test_leaf_first", found[1].function)
        self.assertIs(found[0], other[0])
        self.assertEqual((), stack(None, {}))
        bounded = deep(2 * MAX_DEPTH, {})
        self.assertEqual((MAX_DEPTH, found[0]), (len(bounded), bounded[0]))


class ProfileTests(SynchronousTestCase):
    def test_profile(self) -> None:
        """Each thread is listed once, with its name and stack, without a delay."""
        end = threading.Event()
        worker = threading.Thread(target=end.wait, name="worker")
        worker.start()
        self.addCleanup(worker.join)
        self.addCleanup(end.set)
        profile = Deferred.fromCoroutine(stacks.profile(Clock(), 30))
        read = reader.read(encode(self.successResultOf(profile)(), 1_700_000_000))
        self.assertEqual([("goroutine", "count")], read.types)
        self.assertEqual(1, read.period)
        self.assertEqual(1_700_000_000 * 10**9, read.started)
        found = {label["thread"]: stack for stack, _, label in read.samples}
        self.assertIn("threading.Event.wait", [f.function for f in found["worker"]])
        self.assertIn(
            f"{__name__}.ProfileTests.test_profile",
            [f.function for f in found[threading.current_thread().name]],
        )
        self.assertEqual({(1,)}, {values for _, values, _ in read.samples})

    def test_unknown(self) -> None:
        """A thread that Python did not start has a stack and no name."""
        (sample,) = stacks.samples([], {-1: sys._getframe()})
        self.assertEqual("?", sample.thread)

"""Stacks of named lines."""

import sys

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling.pprof import Frame, Stack
from api_exporter.profiling.stacks import MAX_DEPTH, stack


def here(known: dict[Frame, Frame]) -> Stack:
    return stack(sys._getframe(), known)


def deep(levels: int, known: dict[Frame, Frame]) -> Stack:
    return deep(levels - 1, known) if levels else here(known)


class StackTests(SynchronousTestCase):
    def test_leaf_first(self) -> None:
        """The function that runs comes first, its caller after it, both with a line."""
        found = here({})
        line = here.__code__.co_firstlineno + 1
        self.assertEqual(Frame(f"{__name__}.here", __file__, line), found[0])
        self.assertEqual(f"{__name__}.StackTests.test_leaf_first", found[1].function)

    def test_bounded(self) -> None:
        """Of a very deep stack the leaf's end is kept."""
        found = deep(2 * MAX_DEPTH, {})
        self.assertEqual(MAX_DEPTH, len(found))
        self.assertEqual(f"{__name__}.here", found[0].function)

    def test_shared(self) -> None:
        """Equal frames of two stacks are one object."""
        known: dict[Frame, Frame] = {}
        one, two = (here(known) for _ in range(2))
        self.assertIs(one[0], two[0])

    def test_nothing(self) -> None:
        """A thread without a frame has an empty stack."""
        self.assertEqual((), stack(None, {}))

"""Long computations in slices, on a clock that only moves when it is told to."""

import gc
import weakref
from collections.abc import Generator

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.refresh.slices import SLICE, Slicer


class SlicerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.slicer = Slicer(self.clock)
        self.done: list[str] = []

    def steps(self, name: str, count: int) -> Generator[None, None, str]:
        """Work of so many steps, each of which uses up a whole slice."""
        for step in range(count):
            self.clock.rightNow += SLICE
            self.done.append(f"{name}{step}")
            yield
        return f"{name} is done"

    def start(self, steps: Generator[None, None, str]) -> Deferred[str]:
        return Deferred.fromCoroutine(self.slicer.run(steps))

    def finish(self) -> None:
        """Let the clock stand still until nothing is left to do."""
        while self.clock.getDelayedCalls():
            self.clock.advance(0)

    def test_result(self) -> None:
        """What the generator returns is the result."""
        result = self.start(self.steps("a", 3))
        self.assertNoResult(result)
        self.finish()
        self.assertEqual("a is done", self.successResultOf(result))
        self.assertEqual(["a0", "a1", "a2"], self.done)

    def test_long_step(self) -> None:
        """A step that is announced as long begins a slice, in which it is alone."""

        def announcing(long: bool) -> Generator[bool, None, None]:
            self.clock.callLater(0, self.done.append, "others")
            yield long
            self.done.append("step")

        for long, order in ((True, ["others", "step"]), (False, ["step", "others"])):
            self.done = []
            result = Deferred.fromCoroutine(self.slicer.run(announcing(long)))
            self.finish()
            self.successResultOf(result)
            self.assertEqual(order, self.done)

    def test_no_steps(self) -> None:
        """A generator without a single step has its result too."""
        result = self.start(self.steps("a", 0))
        self.finish()
        self.assertEqual("a is done", self.successResultOf(result))

    def test_exception(self) -> None:
        """What the generator raises is raised, and nothing is left behind."""

        def failing() -> Generator[None, None, str]:
            yield
            raise ZeroDivisionError

        result = self.start(failing())
        self.finish()
        self.failureResultOf(result, ZeroDivisionError)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_cancel(self) -> None:
        """Cancelling stops the generator between two steps, for good."""
        result = self.start(self.steps("a", 3))
        self.clock.callLater(0, result.cancel)
        self.finish()
        self.failureResultOf(result, CancelledError)
        self.assertEqual(["a0"], self.done)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_cancel_before(self) -> None:
        """What is cancelled before its first step takes none."""
        result = self.start(self.steps("a", 1))
        result.cancel()
        self.failureResultOf(result, CancelledError)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual([], self.done)

    def test_turns(self) -> None:
        """Between two slices everything else gets its turn."""

        def other(count: int) -> None:
            self.done.append(f"other{count}")
            if count < 3:
                self.clock.callLater(0, other, count + 1)

        result = self.start(self.steps("a", 3))
        other(0)
        self.finish()
        self.successResultOf(result)
        self.assertEqual(
            ["other0", "a0", "other1", "a1", "other2", "a2", "other3"], self.done
        )
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_short_steps(self) -> None:
        """Short steps share a slice: a hundred of them are no hundred turns."""

        def short() -> Generator[None, None, str]:
            for _ in range(100):
                self.clock.rightNow += SLICE / 50
                yield
            return "done"

        def other() -> None:
            self.done.append("other")
            if not result.called:
                self.clock.callLater(0, other)

        result = self.start(short())
        other()
        self.finish()
        self.assertEqual("done", self.successResultOf(result))
        self.assertLess(len(self.done), 6)

    def test_two(self) -> None:
        """Cancelling one of two computations leaves the other alone."""
        first, second = self.start(self.steps("a", 3)), self.start(self.steps("b", 3))
        self.clock.callLater(SLICE, first.cancel)
        self.finish()
        self.failureResultOf(first, CancelledError)
        self.assertEqual("b is done", self.successResultOf(second))
        self.assertEqual(["b0", "b1", "b2"], [d for d in self.done if d[0] == "b"])
        self.assertLess(len([d for d in self.done if d[0] == "a"]), 3)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_one_at_a_time(self) -> None:
        """A computation begins when the one before it is done, or was cancelled."""
        first, second = self.start(self.steps("a", 2)), self.start(self.steps("b", 2))
        third = self.start(self.steps("c", 1))
        second.cancel()
        self.failureResultOf(second, CancelledError)
        self.finish()
        self.successResultOf(first)
        self.successResultOf(third)
        self.assertEqual(["a0", "a1", "c0"], self.done)

    def test_nothing_kept(self) -> None:
        """A result that nobody holds is gone at once, without the garbage collector."""

        class Result:
            pass

        def steps() -> Generator[None, None, Result]:
            yield
            return Result()

        running = Deferred.fromCoroutine(self.slicer.run(steps()))
        gc.disable()
        self.addCleanup(gc.enable)
        self.finish()
        result = weakref.ref(self.successResultOf(running))
        del running
        self.assertIsNone(result())

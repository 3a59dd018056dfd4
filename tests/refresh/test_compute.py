"""The compute thread: one computation at a time, beside the event loop."""

import contextlib
import gc
import weakref
from threading import Event, get_ident

from twisted.internet import reactor  # noqa: TID251 - threads are real here
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import TestCase

from api_exporter.refresh.compute import ComputeThread, compute_at_once


def defect() -> None:
    raise ZeroDivisionError("oops")


class ComputeThreadTests(TestCase):
    def setUp(self) -> None:
        threads = ThreadPool(0, 1)
        threads.start()
        self.addCleanup(threads.stop)
        self.compute = ComputeThread(reactor, threads)  # type: ignore[arg-type]
        self.go = Event()
        self.addCleanup(self.go.set)
        self.done: list[int] = []

    async def work(self, number: int) -> None:
        await self.compute(self._work, number)

    def _work(self, number: int) -> None:
        assert self.go.wait(10)
        self.done.append(number)

    def start(self, number: int) -> Deferred[None]:
        return ensureDeferred(self.work(number))

    async def test_result(self) -> None:
        """A function gets its arguments in a thread, and returns to its caller."""
        self.assertEqual(12, await self.compute(int, "c", base=16))
        self.assertNotEqual(get_ident(), await self.compute(get_ident))

    async def test_error(self) -> None:
        """An error is raised where it is awaited, with its own traceback."""
        with self.assertRaises(ZeroDivisionError) as caught:
            await self.compute(defect)
        traceback, names = caught.exception.__traceback__, []
        while traceback is not None:
            names.append(traceback.tb_frame.f_code.co_name)
            traceback = traceback.tb_next
        self.assertEqual("defect", names[-1])

    async def test_error_keeps_nothing(self) -> None:
        """A failed computation's arguments are freed without garbage collection."""

        class Given:
            pass

        def fail(given: Given) -> None:
            raise ZeroDivisionError(type(given))

        gc.disable()
        self.addCleanup(gc.enable)
        given = Given()
        alive = weakref.ref(given)
        computing = self.compute(fail, given)
        del given
        with contextlib.suppress(ZeroDivisionError):
            await computing
        self.assertIsNone(alive())

    async def test_order(self) -> None:
        """Computations are done one after the other, in the order of their calls."""
        all_ = [self.start(number) for number in range(5)]
        self.assertEqual([], self.done)
        self.go.set()
        for one in all_:
            await one
        self.assertEqual(list(range(5)), self.done)

    async def test_cancelled(self) -> None:
        """A computation that is cancelled while it waits does not start, and its caller
        is notified at once. If it already runs, only its result is dropped.
        """
        running, waiting, last = (self.start(number) for number in range(3))
        for one in (running, waiting):
            one.cancel()
            self.failureResultOf(one, CancelledError)
        self.go.set()
        await last
        self.assertIn(2, self.done)
        self.assertNotIn(1, self.done)

    async def test_at_once(self) -> None:
        """A command computes in its own thread."""
        self.assertEqual(get_ident(), await compute_at_once(get_ident))
        with self.assertRaises(ZeroDivisionError):
            await compute_at_once(defect)

"""The compute thread: one computation at a time, beside the event loop."""

import contextlib
import gc
import weakref
from gzip import compress
from threading import Event

from twisted.internet import reactor  # noqa: TID251 - threads are real here
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.internet.task import Clock
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase, TestCase

from api_exporter.netbird.bodies import unpack
from api_exporter.ports import ResponseBody
from api_exporter.refresh import compute
from api_exporter.refresh.compute import SLOW_SECONDS, AccountCompute, ComputeThread
from tests.parts import DelayedCompute


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
        """A cancelled computation does not start, or its result is dropped."""
        running, waiting, last = (self.start(number) for number in range(3))
        for one in (running, waiting):
            one.cancel()
            self.failureResultOf(one, CancelledError)
        self.go.set()
        await last
        self.assertIn(2, self.done)
        self.assertNotIn(1, self.done)


def _no_memory(_: ResponseBody) -> bytes:
    raise MemoryError


class AccountComputeTests(SynchronousTestCase):
    """A response of up to 100 bytes is small here."""

    def setUp(self) -> None:
        self.thread = DelayedCompute()
        self.clock = Clock()
        self.bodies: dict[str, ResponseBody] = {}
        self.compute = AccountCompute(self.thread, self._fetch, 100, self.clock.seconds)

    async def _fetch(self, path: str, _: float) -> ResponseBody:
        return self.bodies[path]

    def fetch(self, path: str, data: bytes, packed: bool) -> ResponseBody:
        self.bodies[path] = ResponseBody(data, packed, limit=900)
        return self.successResultOf(ensureDeferred(self.compute.fetch(path, 0.0)))

    def computes_at_once(self) -> bool:
        done = Deferred.fromCoroutine(self._add())
        at_once = done.called
        while self.thread.waiting:
            self.thread.go()
        self.assertEqual(5, self.successResultOf(done))
        return at_once

    async def _add(self) -> int:
        return await self.compute(sum, (2, 3))

    def test_small(self) -> None:
        """The thread computes while the newest response to any path is large."""
        large, small = b"x" * 101, b"x" * 100
        for path, data, packed, at_once in (
            ("peers", small, False, True),
            ("peers", large, False, False),
            ("groups", small, False, False),
            ("peers", small, False, True),
            ("usage?day=1", compress(large), True, False),
            ("usage?day=2", compress(small), True, True),
            ("groups", b"not gzip", True, False),
            ("groups", compress(b""), True, True),
        ):
            with self.subTest(path=path, data=data):
                body = self.fetch(path, data, packed)
                self.assertEqual(at_once, self.computes_at_once())
                if data != b"not gzip":
                    self.assertIn(unpack(body), {small, large, b""})

    def test_beside(self) -> None:
        """While one computation is in the thread, the next one waits for it there."""
        self.fetch("peers", b"x" * 101, packed=False)
        waiting = Deferred.fromCoroutine(self._add())
        self.fetch("peers", b"x", packed=False)
        self.assertFalse(self.computes_at_once())
        self.assertEqual(5, self.successResultOf(waiting))
        self.assertTrue(self.computes_at_once())

    def test_turns(self) -> None:
        """Accounts take turns: one with much to compute does not delay another."""
        other = AccountCompute(self.thread, self._fetch, 100)
        self.bodies["peers"] = ResponseBody(b"x" * 101)
        for one in (self.compute, other):
            self.successResultOf(ensureDeferred(one.fetch("peers", 0.0)))
        done: list[str] = []

        async def add(account: AccountCompute, name: str) -> None:
            await account(done.append, name)

        for account, name in (
            (self.compute, "a1"),
            (self.compute, "a2"),
            (other, "b1"),
        ):
            Deferred.fromCoroutine(add(account, name))
        self.thread.go()
        self.assertEqual(["a1", "b1"], done)
        self.thread.go()
        self.assertEqual(["a1", "b1", "a2"], done)

    def test_cancelled_turn(self) -> None:
        """A computation that is cancelled leaves its turn to the next one."""
        self.fetch("peers", b"x" * 101, packed=False)
        for waits in (False, True):
            first = Deferred.fromCoroutine(self._add()) if waits else None
            cancelled = Deferred.fromCoroutine(self._add())
            last = Deferred.fromCoroutine(self._add())
            cancelled.cancel()
            self.failureResultOf(cancelled, CancelledError)
            self.thread.go()
            self.thread.go()
            self.assertEqual(5, self.successResultOf(last))
            if first is not None:
                self.assertEqual(5, self.successResultOf(first))

    def test_first(self) -> None:
        """Before the first response, all is for the thread: records may be known."""
        self.assertFalse(self.computes_at_once())
        self.fetch("peers", b"x", packed=False)
        self.assertTrue(self.computes_at_once())

    def test_close(self) -> None:
        """The memory of a body that was unpacked at once, or in vain, is freed."""
        closed: list[bool] = []
        body = ResponseBody(compress(b"{}"), True, 9, lambda: closed.append(True))
        self.bodies["peers"] = body
        for _ in range(2):
            fetching = ensureDeferred(self.compute.fetch("peers", 0.0))
            self.successResultOf(fetching).close()
            self.patch(compute, "unpack", _no_memory)
        self.assertEqual([True, True], closed)

    def test_slow(self) -> None:
        """A slow computation blocks the event loop once: the thread does the others."""
        self.fetch("peers", b"x", packed=False)
        for seconds, at_once in ((SLOW_SECONDS, True), (SLOW_SECONDS + 1, False)):
            self.successResultOf(ensureDeferred(self._advance(seconds)))
            self.assertEqual(at_once, self.computes_at_once())
        self.assertFalse(self.computes_at_once())

    async def _advance(self, seconds: float) -> None:
        await self.compute(self.clock.advance, seconds)

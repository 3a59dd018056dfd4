"""The compute thread: long computations, one after the other, beside the event loop.

Those of an account with small responses are short: the event loop computes them itself.
A computation is a function of frozen values, so it needs no lock.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from time import thread_time
from traceback import clear_frames
from typing import ParamSpec, TypeVar

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, DeferredLock
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from api_exporter.netbird.bodies import unpack
from api_exporter.ports import Compute, Fetch, ResponseBody, UpstreamError

P = ParamSpec("P")
T = TypeVar("T")

SWITCH_INTERVAL = 0.001
"""Seconds after which the compute thread hands the interpreter to the event loop."""

SMALL_BYTES = 256 * 1024
"""The most bytes of a small response, unpacked: the list of about 300 peers.

To hand a computation over costs as much as to compute with a hundred peers.
"""

SLOW_SECONDS = 0.1
"""Processor seconds after which an account's computations are never done at once."""


class ComputeThread:
    """A `ports.Compute` in one thread for all accounts.

    A computation that is cancelled while it waits does not start. If it is cancelled
    later, its result is dropped.

    Args:
        thread: a pool of one daemon thread, which never delays the process's end.
    """

    def __init__(self, reactor: IReactorFromThreads, thread: ThreadPool) -> None:
        self._reactor = reactor
        self._thread = thread

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        work = [partial(function, *args, **kwargs)]

        def compute() -> T:
            if not work:
                raise CancelledError
            computation = work.pop()  # a traceback must not keep the arguments
            try:
                return computation()
            except Exception as error:
                clear_frames(error.__traceback__)
                raise
            finally:
                del computation

        def forget(reason: Failure) -> Failure:
            work.clear()
            return reason

        done = deferToThreadPool(self._reactor, self._thread, compute)
        return done.addErrback(forget)


async def compute_at_once(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Compute in the caller's thread, for a command that does nothing else."""
    return function(*args, **kwargs)


class AccountCompute:
    """A `ports.Compute` of one account: at once if its newest responses are all small.

    Before its first response an account may have many records from before a reload.

    Args:
        thread: computes everything else.
        spent: returns processor seconds of the current thread.
    """

    def __init__(
        self,
        thread: Compute,
        fetch: Fetch,
        small_bytes: int = SMALL_BYTES,
        spent: Callable[[], float] = thread_time,
    ) -> None:
        self._thread = thread
        self._fetch = fetch
        self._small_bytes = small_bytes
        self._spent = spent
        self._large: set[str] = set()
        self._turn = DeferredLock()
        self._is_slow = self._has_answer = False

    async def fetch(self, path: str, max_seconds: float) -> ResponseBody:
        """Fetch a response, and note whether it is small; see `ports.Fetch`."""
        body = await self._fetch(path, max_seconds)
        name = path.partition("?")[0]
        self._has_answer = True
        self._large.add(name)
        if len(body.data) <= self._small_bytes:
            try:
                data = unpack(replace(body, limit=min(body.limit, self._small_bytes)))
            except (MemoryError, UpstreamError):  # decoding raises it again
                return body
            self._large.discard(name)
            return ResponseBody(data, close=body.close)
        return body

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        # Computations of an account share caches: none beside one in the thread.
        is_small = self._has_answer and not self._large and not self._is_slow
        compute = self._at_once if is_small and not self._turn.locked else self._in_turn
        return compute(partial(function, *args, **kwargs))

    async def _in_turn(self, computation: Callable[[], T]) -> T:
        # One of an account waits for the thread at a time, so accounts take turns.
        async with self._turn:
            computing = self._thread(computation)
            del computation  # a traceback must not keep the arguments
            return await computing

    async def _at_once(self, computation: Callable[[], T]) -> T:
        began = self._spent()
        try:
            return computation()
        finally:
            self._is_slow = self._spent() - began > SLOW_SECONDS

"""The compute thread: long computations, one after the other, beside the event loop.

A computation is a function of frozen values, so it needs no lock.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from traceback import clear_frames
from typing import ParamSpec, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

P = ParamSpec("P")
T = TypeVar("T")

SWITCH_INTERVAL = 0.001
"""Seconds after which the compute thread hands the interpreter to the event loop."""


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
        done: Deferred[T] = Deferred()
        work = [partial(function, *args, **kwargs)]

        def compute() -> Callable[[], None]:
            computation = work.pop()  # a traceback must not keep the arguments
            if done.called:
                return lambda: None
            try:
                result = computation()
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                clear_frames(error.__traceback__)
                return partial(done.errback, Failure(error))
            finally:
                del computation
            return partial(done.callback, result)

        def end(_: bool, deliver: Callable[[], None]) -> None:
            self._reactor.callFromThread(_deliver, done, deliver)

        self._thread.callInThreadWithCallback(end, compute)
        return done


def _deliver(done: Deferred[T], deliver: Callable[[], None]) -> None:
    if not done.called:
        deliver()


async def compute_at_once(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Compute in the caller's thread, for a command that does nothing else."""
    return function(*args, **kwargs)

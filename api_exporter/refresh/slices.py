"""Long computations in short slices, so that the event loop keeps turning."""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

from twisted.internet.defer import CancelledError, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Cooperator

T = TypeVar("T")

SLICE = 0.01
"""Seconds that a computation may take before all else has its turn."""


class Slicer:
    """Runs generators: each `yield` is a place where the event loop may take over.

    What is yielded says whether the next step takes long: it gets a slice of its own.

    One after the other: what fifty accounts have begun at once takes the memory of all
    fifty, and none of them is done sooner.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._end = 0.0
        self._turn = DeferredLock()
        self._cooperator = Cooperator(
            terminationPredicateFactory=self._begin,
            scheduler=lambda run: clock.callLater(0, run),
        )

    def _begin(self) -> Callable[[], bool]:
        self._end = self._clock.seconds() + SLICE
        return self._is_over

    def _is_over(self) -> bool:
        return self._clock.seconds() >= self._end

    async def run(self, steps: Generator[object, None, T]) -> T:
        """What the generator returns or raises; cancelling stops it between steps."""
        returned: list[T] = []
        raised: list[Exception] = []

        def to_the_end() -> Generator[None, None, None]:
            try:
                with closing(steps):
                    while True:
                        if next(steps):
                            self._end = 0.0
                        if self._is_over():  # a turn costs more than a small step
                            yield
            except StopIteration as stop:
                returned.append(stop.value)
            except Exception as error:  # noqa: BLE001 - raised below
                raised.append(error)

        async with self._turn:
            task = self._cooperator.cooperate(to_the_end())
            try:
                await task.whenDone()
            except CancelledError:
                task.stop()
                raise
        # Neither may end as the task's failure: that would be kept for ever, in a
        # circle, and with it the frames of all that it went through.
        if raised:
            raise raised.pop()
        return returned.pop()

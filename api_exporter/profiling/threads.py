"""What every thread is doing at this moment: Python's nearest to Go's goroutines."""

import sys
import threading
from collections.abc import Mapping
from types import FrameType

from twisted.internet.interfaces import IReactorTime

from api_exporter.profiling.in_thread import InThread
from api_exporter.profiling.pprof import Frame, Profile, Sample, ValueType, encode
from api_exporter.profiling.stacks import stack


async def profile(
    _clock: IReactorTime, in_thread: InThread, _seconds: int, started: float
) -> bytes:
    """The stacks of all threads; takes no time.

    In another thread, which is then seen at it, so that the reactor's own stack is not
    that of answering this very request.

    Args:
        started: now, in seconds since the epoch.
    """
    return await in_thread(lambda: encode(_profile(started)))


def _profile(started: float) -> Profile:
    return Profile(
        # Go's word for it, by which tools know the profile.
        types=(ValueType("goroutine", "count"),),
        samples=samples(threading.enumerate(), sys._current_frames()),
        period=1,
        started=int(started * 1e9),
    )


def samples(
    threads: list[threading.Thread], frames: Mapping[int, FrameType]
) -> list[Sample]:
    """One stack a thread; threads that Python did not start have no name."""
    names = {thread.ident: thread.name for thread in threads}
    known: dict[Frame, Frame] = {}
    return [
        Sample(stack(frame, known), (1,), names.get(ident, "?"))
        for ident, frame in frames.items()
    ]

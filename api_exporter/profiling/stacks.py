"""Stacks of named lines, and the profile of what every thread is doing at this moment:
Python's nearest to Go's goroutines.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType

from api_exporter.profiling.pprof import Frame, Profile, Sample, Stack, ValueType

MAX_DEPTH = 128
"""Frames of a stack that are kept, from the leaf on; Go keeps as many."""


async def profile(_clock: object, _seconds: int) -> Callable[[], Profile]:
    """The stacks of all threads, when it is called, which takes no time.

    In another thread, which is then seen at it, so that the reactor's own stack is not
    that of answering this very request.
    """
    return lambda: Profile(
        # Go's word for it, by which tools know the profile.
        types=(ValueType("goroutine", "count"),),
        samples=samples(threading.enumerate(), stacks({})),
        period=1,
    )


def samples(
    threads: list[threading.Thread], found: Mapping[int | None, Stack]
) -> list[Sample]:
    """One stack a thread; threads that Python did not start have no name."""
    names = {thread.ident: thread.name for thread in threads}
    return [Sample(where, (1,), names.get(i, "?")) for i, where in found.items()]


def stacks(known: dict[Frame, Frame]) -> dict[int | None, Stack]:
    """Where all threads are now, by their identity.

    Args:
        known: every frame seen so far, so that stacks share them.
    """
    frames = sys._current_frames()
    return {ident: stack(frame, known) for ident, frame in frames.items()}


def stack(frame: FrameType | None, known: dict[Frame, Frame]) -> Stack:
    """The stack that ends in a frame."""
    found: list[Frame] = []
    while frame is not None and len(found) < MAX_DEPTH:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "?")
        # A frame that is just being entered or left has no line.
        line = frame.f_lineno or code.co_firstlineno
        named = Frame(f"{module}.{code.co_qualname}", code.co_filename, line)
        found.append(known.setdefault(named, named))
        frame = frame.f_back
    return tuple(found)

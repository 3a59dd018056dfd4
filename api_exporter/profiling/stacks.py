"""Stacks of named lines, and the profile of all threads' current stacks.

It is Python's counterpart of Go's goroutine profile.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from threading import Thread
from types import FrameType

from api_exporter.profiling.pprof import Frame, Profile, ProfileSample, Stack, ValueType

MAX_DEPTH = 128
"""Frames of a stack that are kept, from the leaf on; Go keeps as many."""


async def profile(_clock: object, _seconds: int) -> Callable[[], Profile]:
    """Return a function that makes the profile of the stacks when it is called.

    A worker thread calls it, so the reactor's stack does not show this request.
    """
    return lambda: Profile(
        # Go's name: tools recognize the profile by it.
        types=(ValueType("goroutine", "count"),),
        samples=samples(threading.enumerate(), sys._current_frames()),
        period=1,
    )


def samples(
    threads: list[Thread], frames: Mapping[int, FrameType]
) -> list[ProfileSample]:
    """Return a stack for each thread; one that Python did not start has no name."""
    names = {thread.ident: thread.name for thread in threads}
    known: dict[Frame, Frame] = {}
    return [
        ProfileSample(stack(frame, known), (1,), names.get(ident, "?"))
        for ident, frame in frames.items()
    ]


def stacks(threads: list[Thread], known: dict[Frame, Frame]) -> dict[Thread, Stack]:
    frames = sys._current_frames()
    return {t: stack(frames.get(t.ident or 0), known) for t in threads}


def stack(frame: FrameType | None, known: dict[Frame, Frame]) -> Stack:
    """Return the stack that ends in a frame.

    Args:
        known: all frames seen so far; equal frames are one object.
    """
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

"""A running thread's frames as a stack of named lines."""

from types import FrameType

from api_exporter.profiling.pprof import Frame, Stack

MAX_DEPTH = 128
"""Frames of a stack that are kept, from the leaf on; Go keeps as many."""


def stack(frame: FrameType | None, known: dict[Frame, Frame]) -> Stack:
    """The stack that ends in a frame.

    Args:
        known: every frame seen so far, so that stacks share them.
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

"""The heap profile by tracemalloc: live blocks, and the lines that allocated them.

Tracing makes the program several times slower. So it runs only during a request, or
from the start on (`PYTHONTRACEMALLOC=5`). It has files and lines, but neither
functions nor freed blocks.
"""

import tracemalloc
from _tracemalloc import _get_traces as get_traces
from collections.abc import Callable, Iterable, Sequence

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.profiling.pprof import Frame, Profile, ProfileSample, ValueType

DEPTH = 5
"""Frames of a stack that tracing keeps: each frame costs time."""

TracedFrame = tuple[str, int]
Trace = (
    tuple[int, int, Sequence[TracedFrame]]
    | tuple[int, int, Sequence[TracedFrame], int | None]
)
"""A trace of tracemalloc: domain, bytes, frames from the leaf on, number of frames."""


async def profile(clock: IReactorTime, seconds: int) -> Callable[[], Profile]:
    """Return a function that makes the profile: of all traced blocks, or new ones."""
    if tracemalloc.is_tracing():
        return _profile(get_traces(), 0, "since tracing began")
    tracemalloc.start(DEPTH)
    try:
        await deferLater(clock, seconds)
        # Not in a thread: this one call never releases the interpreter's lock.
        # And not take_snapshot, whose public form costs 10 µs for each block.
        traces = get_traces()
    finally:
        tracemalloc.stop()
    return _profile(traces, seconds, f"allocated within {seconds} seconds")


def _profile(
    traces: Sequence[Trace], seconds: int, which: str
) -> Callable[[], Profile]:
    return lambda: Profile(
        types=(ValueType("inuse_objects", "count"), ValueType("inuse_space", "bytes")),
        samples=samples(traces),
        period=1,
        duration=seconds * 1_000_000_000,
        comment=f"Live blocks, {which}.",
    )


def samples(traces: Iterable[Trace]) -> list[ProfileSample]:
    """Return the number and the bytes of blocks by stack."""
    totals: dict[Sequence[TracedFrame], list[int]] = {}
    for _, size, frames, *_ in traces:
        total = totals.setdefault(frames, [0, 0])
        total[0] += 1
        total[1] += size
    return [
        ProfileSample(tuple(_frame(*frame) for frame in frames), (blocks, size))
        for frames, (blocks, size) in totals.items()
    ]


def _frame(file: str, line: int) -> Frame:
    short = "/".join(file.split("/")[-2:])
    return Frame(f"{short}:{line}", file, line)

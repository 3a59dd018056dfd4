"""The heap profile, by tracemalloc: the blocks that are alive, and who asked for them.

Tracing makes the program several times slower, so it runs only while it is asked for,
unless it has run from the start (`PYTHONTRACEMALLOC=5`). It knows files and lines, but
no functions and nothing of blocks that have been freed.
"""

import tracemalloc
from _tracemalloc import _get_traces as get_traces
from collections.abc import Callable, Iterable, Sequence

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.profiling.pprof import Frame, Profile, Sample, ValueType

DEPTH = 5
"""Frames that are kept of a stack while we trace: every one of them costs time."""

TracedFrame = tuple[str, int]
Trace = (
    tuple[int, int, Sequence[TracedFrame]]
    | tuple[int, int, Sequence[TracedFrame], int | None]
)
"""tracemalloc's own: domain, bytes, frames from the leaf on, their number."""


async def profile(clock: IReactorTime, seconds: int) -> Callable[[], Profile]:
    """The live blocks: all since tracing began, or those of the next seconds."""
    if tracemalloc.is_tracing():
        return _profile(get_traces(), 0, "since tracing began")
    tracemalloc.start(DEPTH)
    try:
        await deferLater(clock, seconds)
        # Not in a thread: it is one call that never lets go of the interpreter's lock.
        # And not take_snapshot, whose public form costs 10 µs a block to go through.
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


def samples(traces: Iterable[Trace]) -> list[Sample]:
    """Blocks and bytes by stack."""
    totals: dict[Sequence[TracedFrame], list[int]] = {}
    for _, size, frames, *_ in traces:
        total = totals.setdefault(frames, [0, 0])
        total[0] += 1
        total[1] += size
    return [
        Sample(tuple(_frame(*frame) for frame in frames), (blocks, size))
        for frames, (blocks, size) in totals.items()
    ]


def _frame(file: str, line: int) -> Frame:
    """A frame that is named for its line, as no function is known."""
    short = "/".join(file.split("/")[-2:])
    return Frame(f"{short}:{line}", file, line)

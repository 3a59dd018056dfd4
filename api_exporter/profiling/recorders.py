"""Recorders of profiles: CPU time by sampling, and live memory by tracemalloc.

There are no signals: SIGPROF would interrupt the reactor's system calls.
"""

import os
import sys
import threading
import time
import tracemalloc
from _tracemalloc import _get_traces as get_traces
from collections.abc import Callable, Sequence
from types import FrameType

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.profiling.pprof import Frame, Stack, encode

SAMPLE_PERIOD = 0.01
"""Seconds between two samples."""

SAMPLING_SWITCH_INTERVAL = 0.0002
"""Seconds after which a thread yields the interpreter to the sampler.

With Python's 5 ms, shorter work would end before each sample."""

MAX_DEPTH = 128
"""Frames of a stack that are kept, from the leaf on; Go keeps as many."""

HEAP_DEPTH = 5
"""Frames of a stack that tracing keeps: each frame costs time."""

Encode = Callable[[float], bytes]
"""Makes the profile in any thread; its argument is the begin, seconds since 1970."""

Trace = (
    tuple[int, int, Sequence[tuple[str, int]]]
    | tuple[int, int, Sequence[tuple[str, int]], int | None]
)
"""A trace of tracemalloc: domain, bytes, frames from the leaf on, number of frames."""


class Sampler:
    """A thread that charges the CPU time of all threads to their current stacks.

    CPU time is the kernel's, so that idle threads add nothing.
    """

    def __init__(self) -> None:
        self.totals: dict[Stack, list[int]] = {}
        self._before = read_clocks()
        self._stopped = threading.Event()
        thread = threading.Thread(target=self._run, name="cpu-profiler", daemon=True)
        self._thread = thread
        thread.start()  # it raises an error if there is no room for a thread
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SAMPLING_SWITCH_INTERVAL)

    def _run(self) -> None:
        is_stopped = False
        while not is_stopped:
            is_stopped = self._stopped.wait(SAMPLE_PERIOD)
            now, frames = read_clocks(), sys._current_frames()
            for ident, used in now.items():
                # A new thread has used all of its time since the last sample.
                spent = used - self._before.get(ident, 0)
                if spent and ident in frames:
                    total = self.totals.setdefault(stack(frames[ident]), [0, 0])
                    total[0] += 1
                    total[1] += spent
            self._before = now

    def stop(self) -> None:
        """Sample a last time, and end the thread: takes about a millisecond."""
        self._stopped.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)


async def record_cpu(clock: IReactorTime, seconds: int) -> Encode:
    began_at, sampler = time.monotonic_ns(), Sampler()
    try:
        await deferLater(clock, seconds)
    finally:
        sampler.stop()
    duration = time.monotonic_ns() - began_at
    return lambda started: encode(
        (("samples", "count"), ("cpu", "nanoseconds")),
        sampler.totals,
        period=int(SAMPLE_PERIOD * 1e9),
        started=started,
        duration=duration,
    )


def read_clocks() -> dict[int, int]:
    """Return the nanoseconds of CPU time of each thread, by its id in Python."""
    found = {}
    for thread in threading.enumerate():
        # After a fork, as of a daemon, Python's `native_id` is that of the parent.
        is_main = thread is threading.main_thread()
        native_id = os.getpid() if is_main else thread.native_id
        if native_id is None or thread.ident is None:
            continue
        try:
            # The kernel's id of a thread's CPU clock. pthread_getcpuclockid would read
            # the memory of a thread that may have ended.
            clock = ~native_id << 3 | 6
            found[thread.ident] = time.clock_gettime_ns(clock)
        except OSError:
            continue
    return found


def stack(frame: FrameType | None) -> Stack:
    found: list[Frame] = []
    while frame is not None and len(found) < MAX_DEPTH:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "?")
        # A frame that is just being entered or left has no line.
        line = frame.f_lineno or code.co_firstlineno
        found.append(Frame(f"{module}.{code.co_qualname}", code.co_filename, line))
        frame = frame.f_back
    return tuple(found)


async def record_heap(clock: IReactorTime, seconds: int) -> Encode:
    """Record live blocks that are allocated within the next seconds.

    If tracing has run from the start (`PYTHONTRACEMALLOC=5`), all live blocks are
    recorded at once. Tracing makes the program several times slower.
    """
    if tracemalloc.is_tracing():
        return _encode_heap(get_traces(), 0)
    tracemalloc.start(HEAP_DEPTH)
    try:
        await deferLater(clock, seconds)
        # Not in a thread: this one call never releases the interpreter's lock.
        # And not take_snapshot, whose public form costs 10 µs for each block.
        traces = get_traces()
    finally:
        tracemalloc.stop()
    return _encode_heap(traces, seconds)


def _encode_heap(traces: Sequence[Trace], seconds: int) -> Encode:
    return lambda started: encode(
        (("inuse_objects", "count"), ("inuse_space", "bytes")),
        sum_blocks(traces),
        period=1,
        started=started,
        duration=seconds * 1_000_000_000,
    )


def sum_blocks(traces: Sequence[Trace]) -> dict[Stack, list[int]]:
    totals: dict[Sequence[tuple[str, int]], list[int]] = {}
    for _, size, frames, *_ in traces:
        total = totals.setdefault(frames, [0, 0])
        total[0] += 1
        total[1] += size
    return {
        tuple(
            Frame(f"{'/'.join(file.split('/')[-2:])}:{line}", file, line)
            for file, line in frames
        ): total
        for frames, total in totals.items()
    }

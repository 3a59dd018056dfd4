"""The CPU profile: a thread samples all threads' stacks a hundred times a second.

The weight of a stack is the CPU time that its thread has used, by the kernel's clock of
the thread. So idle threads add nothing. Worker threads and the sampler count like the
main thread. There are no signals: SIGPROF would interrupt the reactor's system calls.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from threading import Thread

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.profiling.pprof import Frame, Profile, ProfileSample, Stack, ValueType
from api_exporter.profiling.stacks import stacks

SAMPLE_PERIOD = 0.01
"""Mean seconds between two samples."""

RUNNING_CHECK_SECONDS = 0.0001
"""Seconds in which the clock of a running thread must advance."""

SAMPLING_SWITCH_INTERVAL = 0.0002
"""Seconds after which a thread yields the interpreter to the sampler.

With Python's 5 ms, shorter work would end before each sample."""

GOLDEN_RATIO = 0.618034
"""The golden ratio: its multiples, modulo 1, fill the space from 0 to 1 evenly."""

Clocks = Mapping[Thread, int]
"""Nanoseconds of CPU time of each thread since its start."""


async def profile(clock: IReactorTime, seconds: int) -> Callable[[], Profile]:
    """Return a function that makes the profile of the next seconds."""
    sampler = Sampler()
    sampler.start()
    try:
        await deferLater(clock, seconds)
    finally:
        sampler.stop()
    return sampler.profile


def read_clocks() -> Clocks:
    """Return the CPU clocks of all threads that have not ended."""
    read = {}
    for thread in threading.enumerate():
        if thread.native_id is None:
            continue
        try:
            # The kernel's id of a thread's CPU clock. pthread_getcpuclockid would read
            # the memory of a thread that may have ended.
            read[thread] = time.clock_gettime_ns(~thread.native_id << 3 | 6)
        except OSError:
            continue
    return read


class Charges:
    """CPU time by thread and stack.

    A thread with short bursts of work is mostly sampled while it waits. So CPU time is
    charged to the current stack only if the thread runs, else to its last running
    stack. Each sample adds at most one stack for each busy thread.
    """

    def __init__(self, now: Clocks) -> None:
        self._before = now
        self._running: dict[Thread, Stack] = {}
        self._totals: dict[tuple[str, Stack], list[int]] = {}

    def busy_threads(self, now: Clocks) -> list[Thread]:
        """Return the threads that have worked since the last sample."""
        # A new thread has used all of its time since the last sample.
        return [t for t, used in now.items() if used > self._before.get(t, 0)]

    def add(self, now: Clocks, found: Mapping[Thread, Stack], after: Clocks) -> None:
        """Charge the CPU time since the last sample.

        Args:
            now: the clocks at the sample.
            found: the stacks of busy threads.
            after: the clocks a moment later: a running thread's clock has advanced.
        """
        for thread, stack in found.items():
            if after.get(thread, 0) > now[thread]:
                self._running[thread] = stack
            key = thread.name, self._running.get(thread, stack)
            total = self._totals.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += now[thread] - self._before.get(thread, 0)
        self._before = now

    def samples(self) -> list[ProfileSample]:
        """Return each stack with its number of charges and its nanoseconds."""
        return [
            ProfileSample(stack, (times, spent), name)
            for (name, stack), (times, spent) in self._totals.items()
        ]


def intervals() -> Iterator[float]:
    """Yield the seconds between samples: periodic work could fall between even ones."""
    for number in count():
        yield SAMPLE_PERIOD * (0.5 + number * GOLDEN_RATIO % 1)


class Sampler:
    """The sampling thread."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = Thread(target=self._run, name="cpu-profiler", daemon=True)

    def start(self) -> None:
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SAMPLING_SWITCH_INTERVAL)
        self._began_at = time.monotonic_ns()
        self._charges = Charges(read_clocks())
        self._thread.start()

    def stop(self) -> None:
        """Sample a last time, and end the thread: takes about a millisecond."""
        self._stopped.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)
        self._ended_at = time.monotonic_ns()

    def _run(self) -> None:
        known: dict[Frame, Frame] = {}
        due, stopped = time.monotonic(), False
        seconds = intervals()
        while not stopped:
            due = max(due + next(seconds), time.monotonic())
            stopped = self._stopped.wait(due - time.monotonic())
            now = read_clocks()
            found = stacks(self._charges.busy_threads(now), known)
            self._stopped.wait(RUNNING_CHECK_SECONDS)
            self._charges.add(now, found, read_clocks())

    def profile(self) -> Profile:
        """Return the profile, once the sampler has stopped."""
        return Profile(
            types=(ValueType("samples", "count"), ValueType("cpu", "nanoseconds")),
            samples=self._charges.samples(),
            period=int(SAMPLE_PERIOD * 1e9),
            duration=self._ended_at - self._began_at,
        )

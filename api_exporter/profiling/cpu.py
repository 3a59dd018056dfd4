"""The CPU profile: a thread samples all threads' stacks a hundred times a second.

A stack is worth the CPU time that its thread has used, by the kernel's clock of that
thread: idle threads cost nothing, worker threads count as the main one does, and so
does the sampling one. No signals: SIGPROF would interrupt the reactor's system calls.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from threading import Thread

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.profiling.pprof import Frame, Profile, Sample, Stack, ValueType
from api_exporter.profiling.stacks import stacks

PERIOD = 0.01
"""Seconds between two samples, on average."""

GAP = 0.0001
"""Seconds in which a running thread must get on."""

SWITCH_INTERVAL = 0.0002
"""Seconds after which a thread lets the sampling one have the interpreter.

With Python's 5 ms, work of less than that would be over whenever we come to look."""

GOLDEN = 0.618034
"""Multiples of it, without their whole part, fill the space from 0 to 1 evenly."""

Clocks = Mapping[Thread, int]
"""Nanoseconds of CPU that each thread has used since it began."""


async def profile(clock: IReactorTime, seconds: int) -> Callable[[], Profile]:
    """Sample for some seconds; ends at once when it is cancelled."""
    sampler = Sampler()
    sampler.start()
    try:
        await deferLater(clock, seconds)
    finally:
        sampler.stop()
    return sampler.profile


def clocks() -> Clocks:
    """All threads' clocks; a thread that has ended has none."""
    read = {}
    for thread in threading.enumerate():
        if thread.native_id is None:
            continue
        try:
            # The kernel's number for the CPU clock of one thread. pthread_getcpuclockid
            # would read the memory of a thread that may have gone.
            read[thread] = time.clock_gettime_ns(~thread.native_id << 3 | 6)
        except OSError:
            continue
    return read


class Charges:
    """CPU time by thread and stack.

    A thread that works in short bursts is mostly found waiting. So its CPU time goes to
    where it is only if it runs, else to where it last was seen to run.

    It grows with the different stacks only: at most one a sample and busy thread.
    """

    def __init__(self, now: Clocks) -> None:
        self._before = now
        self._running: dict[Thread, Stack] = {}
        self._totals: dict[tuple[str, Stack], list[int]] = {}

    def busy(self, now: Clocks) -> list[Thread]:
        """Threads that have worked since the last sample."""
        # A thread that was not there before has used all of it since.
        return [t for t, used in now.items() if used > self._before.get(t, 0)]

    def add(self, now: Clocks, found: Mapping[Thread, Stack], soon: Clocks) -> None:
        """Charge what threads have used since the last sample.

        Args:
            found: where those are that have worked.
            soon: the clocks a moment later: that of a thread that runs has moved.
        """
        for thread, where in found.items():
            if soon.get(thread, 0) > now[thread]:
                self._running[thread] = where
            key = thread.name, self._running.get(thread, where)
            total = self._totals.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += now[thread] - self._before.get(thread, 0)
        self._before = now

    def samples(self) -> list[Sample]:
        """How often each stack was charged, and nanoseconds."""
        return [
            Sample(where, (times, spent), name)
            for (name, where), (times, spent) in self._totals.items()
        ]


class Sampler:
    """The thread that samples."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = Thread(target=self._run, name="cpu-profiler", daemon=True)

    def start(self) -> None:
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._began = time.monotonic_ns()
        self._charges = Charges(clocks())
        self._thread.start()

    def stop(self) -> None:
        """Sample a last time, and end the thread: takes about a millisecond."""
        self._stopped.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)
        self._ended = time.monotonic_ns()

    def _run(self) -> None:
        known: dict[Frame, Frame] = {}
        phase, due = 0.0, time.monotonic()
        stopped = False
        while not stopped:
            # Unevenly, or work that keeps in step with us would never be seen.
            phase = (phase + GOLDEN) % 1
            due = max(due + PERIOD * (0.5 + phase), time.monotonic())
            stopped = self._stopped.wait(due - time.monotonic())
            now = clocks()
            found = stacks(self._charges.busy(now), known)
            self._stopped.wait(GAP)
            self._charges.add(now, found, clocks())

    def profile(self) -> Profile:
        """What was found, once it has been stopped."""
        return Profile(
            types=(ValueType("samples", "count"), ValueType("cpu", "nanoseconds")),
            samples=self._charges.samples(),
            period=int(PERIOD * 1e9),
            duration=self._ended - self._began,
        )

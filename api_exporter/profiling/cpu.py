"""Where CPU time goes: a thread looks at all threads a hundred times a second.

A stack is worth the CPU time that its thread has used, by the kernel's clock of that
thread: idle threads cost nothing, worker threads count as the main one does, and so
does the looking thread. No signals: SIGPROF would interrupt the reactor's system calls.
"""

import sys
import threading
import time

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.profiling.in_thread import InThread
from api_exporter.profiling.pprof import Profile, ValueType, encode
from api_exporter.profiling.tally import Clocks, Tally

PERIOD = 0.01
"""Seconds between two looks, on average."""

GAP = 0.0001
"""Seconds in which a running thread must get on."""

SWITCH_INTERVAL = 0.0002
"""Seconds after which a thread lets the looking one have the interpreter.

With Python's 5 ms, work of less than that would be over whenever we come to look."""

GOLDEN = 0.618034
"""Multiples of it, without their whole part, fill the space from 0 to 1 evenly."""


async def profile(
    clock: IReactorTime, in_thread: InThread, seconds: int, started: float
) -> bytes:
    """A CPU profile of the next seconds; ends at once when it is cancelled.

    Args:
        started: now, in seconds since the epoch.
    """
    sampler = Sampler(started=started)
    sampler.start()
    try:
        await deferLater(clock, seconds)
    finally:
        sampler.stop()
    return await in_thread(lambda: encode(sampler.profile()))


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


class Sampler:
    """The thread that looks.

    Args:
        started: seconds since the epoch.
    """

    def __init__(self, *, started: float) -> None:
        self._started = started
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="cpu-profiler", daemon=True
        )

    def start(self) -> None:
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._began = time.monotonic_ns()
        self._tally = Tally(clocks())
        self._thread.start()

    def stop(self) -> None:
        """Look a last time, and end the thread: takes about a millisecond."""
        self._stopped.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval)
        self._ended = time.monotonic_ns()

    def _run(self) -> None:
        phase, due = 0.0, time.monotonic()
        stopped = False
        while not stopped:
            # Unevenly, or work that keeps in step with us would never be seen.
            phase = (phase + GOLDEN) % 1
            due = max(due + PERIOD * (0.5 + phase), time.monotonic())
            stopped = self._stopped.wait(due - time.monotonic())
            self._tally.look(clocks(), sys._current_frames())
            self._stopped.wait(GAP)
            self._tally.charge(clocks())

    def profile(self) -> Profile:
        """What was found, once it has been stopped."""
        return Profile(
            types=(ValueType("samples", "count"), ValueType("cpu", "nanoseconds")),
            samples=self._tally.samples(),
            period=int(PERIOD * 1e9),
            started=int(self._started * 1e9),
            duration=self._ended - self._began,
        )

"""Whose CPU time it is: charges what threads have used to their stacks. Pure."""

from collections.abc import Mapping
from threading import Thread
from types import FrameType

from api_exporter.profiling.pprof import Frame, Sample, Stack
from api_exporter.profiling.stacks import stack

Clocks = Mapping[Thread, int]
"""Nanoseconds of CPU that each thread has used since it began."""


class Tally:
    """CPU time by thread and stack.

    A thread that works in short bursts is mostly found waiting when one looks. So its
    CPU time goes to where it is only if it runs, else to where it last was seen to run.

    It grows with the different stacks only: at most one for each look and busy thread.
    """

    def __init__(self, now: Clocks) -> None:
        self._now = now
        self._known: dict[Frame, Frame] = {}
        self._spent: dict[Thread, tuple[int, Stack]] = {}
        self._running: dict[Thread, Stack] = {}
        self._totals: dict[tuple[str, Stack], list[int]] = {}

    def look(self, now: Clocks, frames: Mapping[int, FrameType]) -> None:
        """Note what each thread has used since the last look, and where it is."""
        for thread, used in now.items():
            # A thread that was not there before has used all of it since.
            spent = used - self._now.get(thread, 0)
            if spent > 0 and thread.ident is not None:
                where = stack(frames.get(thread.ident), self._known)
                self._spent[thread] = spent, where
        self._now = now

    def charge(self, later: Clocks) -> None:
        """Add what was noted: a thread runs if its clock has moved since the look."""
        for thread, (spent, where) in self._spent.items():
            if later.get(thread, 0) > self._now[thread]:
                self._running[thread] = where
            key = thread.name, self._running.get(thread, where)
            total = self._totals.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += spent
        self._spent.clear()

    def samples(self) -> list[Sample]:
        """Looks and nanoseconds."""
        return [
            Sample(where, (looks, spent), name)
            for (name, where), (looks, spent) in self._totals.items()
        ]

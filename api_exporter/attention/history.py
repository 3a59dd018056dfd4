"""The state of the network in the last hours: one sample per step, in bounded memory.

A restart deletes it: Prometheus stores the permanent history. Six hours take 4.3 kB.
"""

from array import array
from collections.abc import Iterator
from itertools import groupby
from math import ceil
from typing import Literal, NamedTuple

from api_exporter.attention.thresholds import SEVERITIES, Severity

HISTORY_SECONDS = 6 * 3600.0

MIN_STEP = 60.0
"""Minimum seconds between two samples."""

_MAX_STEPS = 2
"""Steps for which a sample holds if the peers are not read again."""

_UNREAD = array("I", (0, 0, 0))

Worst = Severity | Literal["unknown"] | None
"""The worst severity; `unknown` before the findings are known, None without any."""

_RANKS: tuple[Worst, ...] = (None, "unknown", None, *reversed(SEVERITIES))
"""Severities by their number in a sample: 0 if it is unread, 2 without findings."""


class Sample(NamedTuple):
    """Numbers of peers, and the worst severity of the step."""

    peers: int
    connected: int
    severity: Worst


class History:
    """The samples of a network.

    Args:
        interval: seconds between two refreshes of the peers.
    """

    def __init__(self, *, interval: float) -> None:
        self.step = max(MIN_STEP, interval)
        self._newest = 0
        self._numbers = _UNREAD * ceil(HISTORY_SECONDS / self.step)

    def observe(self, at: float, sample: Sample) -> None:
        """Add a sample; the worst severity of its step remains.

        Later samples are removed: the clock may have been set back.
        """
        step, rank = int(at // self.step), _RANKS.index(sample.severity, 1)
        if step == self._newest:
            rank = max(rank, self._numbers[-1])
        self._numbers, self._newest = self._until(step), step
        self._numbers[-3:] = array("I", (sample.peers, sample.connected, rank))

    def samples(self, now: float) -> list[Sample | None]:
        """Return a sample for each step, the newest last; None if it is not known."""
        numbers = iter(self._until(int(now // self.step)))
        return [
            Sample(peers, connected, _RANKS[rank]) if rank else None
            for peers, connected, rank in zip(numbers, numbers, numbers, strict=True)
        ]

    def severities(self, now: float) -> Iterator[tuple[str, int]]:
        """Yield the worst severities with their numbers of steps, the newest last.

        `none` is a network without findings; of `unread` nothing is known.
        """
        for rank, steps in groupby(self._until(int(now // self.step))[2::3]):
            name = _RANKS[rank] or ("none" if rank else "unread")
            yield name, len([*steps])

    def _until(self, step: int) -> "array[int]":
        """Return the numbers whose last sample is that of a step."""
        count = len(self._numbers) // 3
        moved = max(-count, min(step - self._newest, count))
        if moved <= 0:
            return _UNREAD * -moved + self._numbers[: 3 * (count + moved)]
        added = self._numbers[-3:] if moved <= _MAX_STEPS else _UNREAD
        return self._numbers[3 * moved :] + added * moved

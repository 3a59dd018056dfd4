"""Repeated patterns of connections. All times are whole seconds since the epoch.

So the state at any time is known without the states before it.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from random import Random

from msgspec import Struct

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
CENTURY = 36525 * DAY

FOUNDED = 18628 * DAY
"""The company's first day, 2021-01-01."""

SETTLED = 20089 * DAY
"""2025-01-01. All machines except the ephemeral ones are older. The network is meant
for times at least a year later."""

MONDAY = 4 * DAY
"""The first Monday of the epoch."""

State = tuple[bool, int, int]
"""The state of a connection: whether connected, last change, and last connection."""


class Pattern(Struct, frozen=True):
    """A repeated pattern of connections, or of another state.

    Attributes:
        phase: a time at which the pattern begins.
        period: seconds until it begins again.
        changes: ascending seconds into the pattern, at which the machine connects,
            disconnects, connects, … and disconnects.
    """

    phase: int
    period: int
    changes: tuple[int, ...]

    def cycle(self, at: float) -> int:
        """Return the number of completed repetitions since the phase."""
        return int((at - self.phase) // self.period)

    def start(self, at: float) -> int:
        return self.phase + self.cycle(at) * self.period

    def is_active(self, at: float) -> bool:
        """Return whether it is connected, or the state lasts."""
        return self.state(at)[0]

    def state(self, at: float) -> State:
        start = self.start(at)
        passed = bisect_right(self.changes, at - start)
        if not passed:  # as at the last repetition's end
            start -= self.period
            passed = len(self.changes)
        changed = start + self.changes[passed - 1]
        if passed % 2:
            return True, changed, changed
        return False, changed, start + self.changes[passed - 2]


def always(_random: Random, _east: int) -> Pattern:
    return Pattern(SETTLED + 40 * DAY, CENTURY, (0, CENTURY - DAY))


def never(_random: Random, _east: int) -> Pattern:
    """Return a pattern that was connected for the last time 200 days after SETTLED."""
    return offline_since(SETTLED + 200 * DAY)


def abandoned(random: Random, _east: int) -> Pattern:
    """Return a pattern that has been disconnected for months."""
    return offline_since(SETTLED + random.randrange(300 * DAY))


def offline_since(instant: int) -> Pattern:
    """Return a pattern connected on the day before `instant` and never afterwards."""
    return Pattern(instant - DAY, CENTURY, (0, DAY))


def outages(random: Random, east: int) -> Pattern:
    """Return a pattern with outages that end about 3 o'clock local time. An outage
    lasts minutes or hours. `east` is in hours from Greenwich.
    """
    days = random.randint(20, 90)
    ends = random.randrange(days) * DAY + (3 - east) * HOUR + random.randrange(HOUR)
    outage = random.randint(2 * MINUTE, 3 * HOUR)
    return Pattern(ends, days * DAY, (0, days * DAY - outage))


def office_hours(random: Random, east: int) -> Pattern:
    """Return a pattern connected during office hours, four or five days a week. All
    machines disconnect at five. `east` is in hours from Greenwich.
    """
    day_off = random.randrange(12)
    changes: list[int] = []
    for day in range(5):
        if day != day_off:
            begin = day * DAY + random.randint(7 * HOUR, 10 * HOUR)
            changes += (begin, day * DAY + 17 * HOUR + random.randrange(8 * MINUTE))
    return Pattern(MONDAY - east * HOUR, WEEK, tuple(changes))


def roaming(random: Random, east: int) -> Pattern:
    """Return a pattern connected three times a day, for random times."""
    return Pattern(-east * HOUR, DAY, tuple(sorted(random.sample(range(DAY), 6))))


def jobs(random: Random, _east: int) -> Pattern:
    """Return a pattern connected for the length of a job. The pause after it is longer
    than NetBird keeps an ephemeral machine.
    """
    length = random.randint(20 * MINUTE, 50 * MINUTE)
    period = length + random.randint(12 * MINUTE, 40 * MINUTE)
    return Pattern(random.randrange(period), period, (0, length))


def cut_off(_random: Random, _east: int) -> Pattern:
    """Return a pattern connected until the login expires, and again 12 hours later."""
    return Pattern(SETTLED, DAY + DAY // 2, (0, DAY))


_ALL = (abandoned, always, cut_off, jobs, never, office_hours, outages, roaming)

PATTERNS: Mapping[str, Callable[[Random, int], Pattern]] = {
    pattern.__name__: pattern for pattern in _ALL
}
"""Functions that return a schedule, given a Random and the hours from Greenwich."""

"""Patterns of connections, which repeat. Whole seconds since the epoch throughout.

So every instant's state is known without living through those before it.
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
"""2025-01-01: all machines but the ephemeral ones are older. The network is meant to be
looked at from a year later on."""

MONDAY = 4 * DAY
"""The first Monday of the epoch."""

State = tuple[bool, int, int]
"""Whether connected, since when that is so, and when last connected."""


class Pattern(Struct, frozen=True):
    """A pattern of connections, or of something else that lasts, repeated for ever.

    Attributes:
        phase: an instant at which the pattern begins.
        period: seconds until it begins again.
        changes: seconds into the pattern, ascending, at which the machine connects,
            disconnects, connects, … and disconnects.
    """

    phase: int
    period: int
    changes: tuple[int, ...]

    def cycle(self, at: float) -> int:
        """How often the pattern has been completed since the phase."""
        return int((at - self.phase) // self.period)

    def start(self, at: float) -> int:
        """When the pattern last began."""
        return self.phase + self.cycle(at) * self.period

    def lasts(self, at: float) -> bool:
        """Whether it is connected, or under way."""
        return self.state(at)[0]

    def state(self, at: float) -> State:
        start = self.start(at)
        passed = bisect_right(self.changes, at - start)
        if not passed:  # nothing yet: as the last repetition has left it
            start -= self.period
            passed = len(self.changes)
        changed = start + self.changes[passed - 1]
        if passed % 2:
            return True, changed, changed
        return False, changed, start + self.changes[passed - 2]


def always(_random: Random, _east: int) -> Pattern:
    """Connected at any time since the network has settled."""
    return Pattern(SETTLED + 40 * DAY, CENTURY, (0, CENTURY - DAY))


def never(_random: Random, _east: int) -> Pattern:
    """Not seen for as long."""
    return offline_since(SETTLED + 200 * DAY)


def abandoned(random: Random, _east: int) -> Pattern:
    """Not seen for months."""
    return offline_since(SETTLED + random.randrange(300 * DAY))


def offline_since(instant: int) -> Pattern:
    """Not connected at any time from the instant on, but on the day before it."""
    return Pattern(instant - DAY, CENTURY, (0, DAY))


def outages(random: Random, east: int) -> Pattern:
    """Connected but for minutes or hours that end about three at night, `east` hours
    from Greenwich.
    """
    days = random.randint(20, 90)
    ends = random.randrange(days) * DAY + (3 - east) * HOUR + random.randrange(HOUR)
    outage = random.randint(2 * MINUTE, 3 * HOUR)
    return Pattern(ends, days * DAY, (0, days * DAY - outage))


def office_hours(random: Random, east: int) -> Pattern:
    """Connected while somebody works, four or five days a week, `east` hours from
    Greenwich. All go home at five.
    """
    day_off = random.randrange(12)
    changes: list[int] = []
    for day in range(5):
        if day != day_off:
            begin = day * DAY + random.randint(7 * HOUR, 10 * HOUR)
            changes += (begin, day * DAY + 17 * HOUR + random.randrange(8 * MINUTE))
    return Pattern(MONDAY - east * HOUR, WEEK, tuple(changes))


def roaming(random: Random, east: int) -> Pattern:
    """Connected three times a day, for as long as it may be."""
    return Pattern(-east * HOUR, DAY, tuple(sorted(random.sample(range(DAY), 6))))


def jobs(random: Random, _east: int) -> Pattern:
    """Connected for the length of a job, then away for longer than the upstream keeps
    an ephemeral machine.
    """
    length = random.randint(20 * MINUTE, 50 * MINUTE)
    period = length + random.randint(12 * MINUTE, 40 * MINUTE)
    return Pattern(random.randrange(period), period, (0, length))


def cut_off(_random: Random, _east: int) -> Pattern:
    """Connected for as long as a login lasts; the next one comes half a day later."""
    return Pattern(SETTLED, DAY + DAY // 2, (0, DAY))


_ALL = (abandoned, always, cut_off, jobs, never, office_hours, outages, roaming)

PATTERNS: Mapping[str, Callable[[Random, int], Pattern]] = {
    pattern.__name__: pattern for pattern in _ALL
}
"""Makes a schedule, given chance and the hours from Greenwich, by its name."""

"""When to ask for what, and how long an answer counts. Pure: time is an argument.

Facts: the upstream's limiter may allow six requests a minute and says in no header when
to come back; its database may have a single connection that peers need too.
"""

from collections import deque
from collections.abc import Mapping

from api_exporter.telemetry.standing import OVERDUE
from api_exporter.upstream.backoff import Jitter, spread

AT_ONCE = 2
"""Requests in flight, at most."""

SHORTEST_PAUSE = 60.0
LONGEST_PAUSE = 240.0
"""Seconds without any request after a 429; doubling from one to the other."""

SHORTEST_ASKED = 1.0
LONGEST_ASKED = 3600.0
"""Seconds that an upstream may ask for (Retry-After): less is no pause, and after more
it is asked whether it has changed its mind."""

UNSUPPORTED_PERIOD = 3600.0
"""Seconds until a path that the upstream did not have is asked for again."""

SHORTEST_MAX_AGE = 300.0
"""Seconds for which metrics stay, at least, although they cannot be refreshed."""


def max_age(period: float, wanted: float | None = None) -> float:
    """Seconds after which records that could not be refreshed are no longer told.

    Args:
        period: seconds between refreshes. Metrics never end before the next one is
            overdue, whatever is wanted.
        wanted: METRICS_MAX_AGE, if it is set.
    """
    if wanted is not None:
        return max(wanted, OVERDUE * period)
    return max(SHORTEST_MAX_AGE, 3 * period)


class Schedule:
    """The due times of all resources.

    The first resource is due at once, each other one when its predecessor has been
    refreshed for the first time, and from then on every period.

    Args:
        periods: seconds by resource name, in the order of the first round.
    """

    def __init__(
        self, periods: Mapping[str, float], *, now: float, jitter: Jitter
    ) -> None:
        self._periods = periods
        self._jitter = jitter
        self._untried = deque(periods)
        self.first = self._untried[0]
        self._newest = self._untried.popleft()
        self._due: dict[str, float] = {self._newest: now}
        self._running: dict[str, float] = {}
        self._unsupported: set[str] = set()
        self._pause = SHORTEST_PAUSE
        self._paused_until = now

    def take(self, now: float) -> str | None:
        """The resource to refresh now, if any; the first one before all others."""
        if now < self._paused_until or len(self._running) >= AT_ONCE:
            return None
        due = (name for name, time in self._due.items() if time <= now)
        name = min(due, key=self._turn, default=None)
        if name is not None:
            del self._due[name]
            self._running[name] = now
        return name

    def _turn(self, name: str) -> tuple[bool, float]:
        return name != self.first, self._due[name]

    def wake_at(self) -> float | None:
        """When there may be something to take; None before a running refresh ends."""
        if not self._due or len(self._running) >= AT_ONCE:
            return None
        return max(min(self._due.values()), self._paused_until)

    def refreshed(self, name: str, now: float) -> None:
        """A refresh has ended, well or badly: the next one is a period after its start.

        After one that took longer than half its period the upstream gets half a
        period's rest.
        """
        self._unsupported.discard(name)
        period = self._periods[name]
        started = self._end(name)
        self._pause = SHORTEST_PAUSE
        self._due[name] = max(
            started + spread(period, self._jitter), now + 0.5 * period
        )
        self._introduce(name, now)

    def unsupported(self, name: str, now: float) -> None:
        """The upstream does not have this resource."""
        self._unsupported.add(name)
        self._end(name)
        self._pause = SHORTEST_PAUSE
        self._due[name] = now + spread(UNSUPPORTED_PERIOD, self._jitter)
        self._introduce(name, now)

    def doubted(self, now: float) -> None:
        """What the upstream did not have it may have: ask again as often as usual."""
        for name in self._unsupported & self._due.keys():
            self._due[name] = min(self._due[name], now + self._periods[name])

    def skipped(self, name: str, now: float) -> None:
        """Nothing was asked: what the path is made of is not known yet."""
        self._end(name)
        self._due[name] = now + spread(self._periods[name], self._jitter)
        self._introduce(name, now)

    def rate_limited(self, name: str, now: float, asked: float | None) -> float:
        """The upstream wants to be left alone; returns for how many seconds it will be.

        Args:
            asked: seconds that it asked for, if it said.
        """
        self._end(name)
        # A request that was under way when the pause began tells nothing new.
        if now >= self._paused_until:
            if asked is None or asked < SHORTEST_ASKED:
                asked = self._pause
            self._paused_until = now + min(asked, LONGEST_ASKED)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._due[name] = self._paused_until
        if self.first in self._due:  # else it is under way
            self._due[self.first] = min(self._due[self.first], self._paused_until)
        self._introduce(name, now)
        return self._paused_until - now

    def _end(self, name: str) -> float:
        return self._running.pop(name)

    def _introduce(self, predecessor: str, now: float) -> None:
        if self._untried and predecessor == self._newest:
            self._newest = self._untried.popleft()
            self._due[self._newest] = now

"""The freshness of a resource: what is known of its refreshes."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.ports import UpstreamError

OVERDUE = 1.5
"""Periods after which the next refresh is overdue, whatever the jitter."""

UNRELIABLE = 2.0
"""Periods after which the records are too old to be relied on. One refresh may take
longer than usual without a probe noticing; a second one that does not come is trouble.
"""

SQUEEZED_PERIOD = 30.0
"""Seconds between two requests for the peers, at least, while the budget is tight and
others are overdue."""

SHORTEST_MAX_AGE = 300.0
"""Seconds for which metrics stay, at least, although they cannot be refreshed."""

State = Literal[
    "starting", "fresh", "late", "failing", "ended", "unsupported", "restricted"
]
"""The same in one word."""


def max_age(period: float, wanted: float | None = None) -> float:
    """Seconds after which records that could not be refreshed are no longer told.

    Args:
        period: seconds between refreshes. Metrics never end before the next one is
            overdue, whatever is wanted; a tight budget makes short periods longer.
        wanted: METRICS_MAX_AGE, if it is set.
    """
    if wanted is not None:
        return max(wanted, OVERDUE * max(period, SQUEEZED_PERIOD))
    return max(SHORTEST_MAX_AGE, 3 * period)


class Freshness(Struct, frozen=True, kw_only=True):
    """What is known of a resource's refreshes.

    Attributes:
        period: seconds between refreshes.
        ended: when the newest refresh ended, seconds since the epoch.
        seconds: how long that took: fetch, decode and render.
        error: why it, or an attempt since, failed; None where none did.
        failures: in a row, the newest included.
        failing_since: when the first of the failures in a row ended.
        withdrawn: whether its metrics have ended, because they were too old.
        supported: whether this upstream has the path; None while unknown.
        restricted: whether it is not supported because the token's user may not read
            all of it.
        last_success: seconds since the epoch.
        records: in the newest good answer.
        rejected: records of that answer that could not be decoded.
    """

    period: float
    ended: float | None = None
    seconds: float = 0.0
    error: UpstreamError | None = None
    failures: int = 0
    failing_since: float | None = None
    withdrawn: bool = False
    supported: bool | None = None
    restricted: bool = False
    last_success: float | None = None
    records: int = 0
    rejected: int = 0

    @property
    def up(self) -> bool | None:
        """Whether it can be relied on; None where there is nothing to say."""
        if self.supported is False:
            return None
        if self.ended is None and self.error is None:
            return None
        return self.error is None and not self.withdrawn

    def succeeded(
        self, *, records: int, rejected: int, seconds: float, at: float
    ) -> "Freshness":
        """Return the freshness after a refresh that ended well at a time."""
        return Freshness(
            period=self.period,
            ended=at,
            seconds=seconds,
            supported=True,
            last_success=at,
            records=records,
            rejected=rejected,
        )

    def failed(self, error: UpstreamError, seconds: float, at: float) -> "Freshness":
        """Return the freshness after a refresh that failed at a time."""
        return replace(
            self,
            ended=at,
            seconds=seconds,
            error=error,
            failures=self.failures + 1,
            failing_since=at if self.error is None else self.failing_since,
        )

    def refused(self, seconds: float, at: float, *, restricted: bool) -> "Freshness":
        """Return the freshness after a refresh that showed that it is unsupported."""
        return replace(
            self,
            ended=at,
            seconds=seconds,
            error=None,
            failures=0,
            failing_since=None,
            supported=False,
            restricted=restricted,
        )

    def state(self, now: float) -> State:
        """The state at a time in seconds since the epoch."""
        if self.supported is False:
            return "restricted" if self.restricted else "unsupported"
        if self.error is not None:
            return "failing"
        if self.withdrawn:
            return "ended"
        if self.last_success is None:
            return "starting"
        late = now - self.last_success > OVERDUE * self.period
        return "late" if late else "fresh"

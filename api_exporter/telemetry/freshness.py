"""The freshness of a resource: the result of its last refreshes."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.unknown import NOTHING_UNKNOWN, Unknown
from api_exporter.ports import UpstreamError

OVERDUE_PERIODS = 1.5
"""Intervals after which the next refresh is overdue, even with the jitter."""

UNRELIABLE_PERIODS = 2.0
"""Intervals after which records are too old for readiness. One slow refresh does not
fail a probe; a second missing refresh does.
"""

CONTENDED_PERIOD = 30.0
"""Minimum seconds between two requests for the peers while the request budget is scarce
and other resources are overdue."""

MIN_MAX_AGE = 300.0
"""Default minimum of METRICS_MAX_AGE in seconds."""

State = Literal[
    "starting", "fresh", "late", "failing", "expired", "unsupported", "restricted"
]
"""The state of a resource in one word; with `expired`, its metrics are withdrawn."""


def max_age(period: float, setting: float | None = None) -> float:
    """Return the seconds after which metrics expire without a successful refresh.

    Args:
        period: seconds between refreshes. Metrics never expire before the next refresh
            is overdue; a scarce request budget makes short intervals longer.
        setting: METRICS_MAX_AGE, if it is set.
    """
    if setting is not None:
        return max(setting, OVERDUE_PERIODS * max(period, CONTENDED_PERIOD))
    return max(MIN_MAX_AGE, 3 * period)


class Freshness(Struct, frozen=True, kw_only=True):
    """The result of a resource's last refreshes; times are in seconds since the epoch.

    Attributes:
        period: seconds between refreshes.
        ended_at: when the newest refresh ended; None before the first.
        seconds: the duration of the newest refresh: fetch, decode and render.
        error: why the newest refresh or a later request failed; None if none failed.
        failures: number of failures in a row, the newest included.
        failing_since: when the first of the failures in a row ended.
        withdrawn: whether its metrics have expired.
        supported: whether the NetBird API has the path; None while unknown.
        restricted: whether it is unsupported because the token's user may not read all
            of it. Of these only the peers are requested, so that `up` is known.
        last_success: when the newest successful refresh ended.
        records: number of records in the newest successful response.
        rejected: number of records of that response that could not be decoded; 0 if the
            resource is not supported.
        unknown: fields and values of that response that this version does not know.
    """

    period: float
    ended_at: float | None = None
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
    unknown: Unknown = NOTHING_UNKNOWN

    @property
    def up(self) -> bool | None:
        """True if the last refresh succeeded and is not withdrawn; None if unknown."""
        if self.supported is False and not self.restricted:
            return None
        if self.ended_at is None and self.error is None:
            return None
        return self.error is None and not self.withdrawn

    def succeeded(
        self,
        *,
        records: int,
        rejected: int,
        seconds: float,
        at: float,
        unknown: Unknown = NOTHING_UNKNOWN,
    ) -> "Freshness":
        return Freshness(
            period=self.period,
            ended_at=at,
            seconds=seconds,
            supported=True,
            last_success=at,
            records=records,
            rejected=rejected,
            unknown=unknown,
        )

    def failed(self, error: UpstreamError, seconds: float, at: float) -> "Freshness":
        return replace(
            self,
            ended_at=at,
            seconds=seconds,
            error=error,
            failures=self.failures + 1,
            failing_since=at if self.error is None else self.failing_since,
        )

    def withheld(self, seconds: float = 0.0, at: float | None = None) -> "Freshness":
        """Return the freshness of a withheld resource.

        Args:
            at: when its refresh ended; None if it was not requested.
        """
        return Freshness(
            period=self.period,
            ended_at=at,
            seconds=seconds,
            supported=False,
            restricted=True,
        )

    def refused(self, seconds: float, at: float) -> "Freshness":
        """Return the freshness after a response that the resource is not available."""
        return replace(
            self,
            ended_at=at,
            seconds=seconds,
            error=None,
            failures=0,
            failing_since=None,
            supported=False,
            restricted=False,
            rejected=0,
            unknown=NOTHING_UNKNOWN,
        )

    def state(self, now: float) -> State:
        """Return the state at a time in seconds since the epoch."""
        if self.supported is False and not self.restricted:
            return "unsupported"
        if self.error is not None:
            return "failing"
        if self.withdrawn:
            return "expired"
        if self.restricted:
            return "restricted"
        if self.last_success is None:
            return "starting"
        late = now - self.last_success > OVERDUE_PERIODS * self.period
        return "late" if late else "fresh"

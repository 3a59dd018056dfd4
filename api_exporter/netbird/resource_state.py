"""The state of a resource: all that is known of it, as one frozen struct."""

from collections.abc import Hashable
from enum import Enum
from math import inf
from typing import Literal

from msgspec import Struct

from api_exporter.netbird.record_cache import KnownRecords
from api_exporter.netbird.unknown import NOTHING_UNKNOWN, Unknown
from api_exporter.ports import UpstreamError

OVERDUE_INTERVALS = 1.5
"""Intervals after which the next refresh is overdue, even with the jitter."""

UNRELIABLE_INTERVALS = 2.0
"""Intervals after which records are too old for readiness. One slow refresh does not
fail a probe; a second missing refresh does.
"""

CONTENDED_INTERVAL = 30.0
"""Minimum seconds between two requests for the peers while the request budget is scarce
and other resources are overdue."""

MIN_MAX_AGE = 300.0
"""Default minimum of METRICS_MAX_AGE in seconds."""


def max_age(interval: float, setting: float | None = None) -> float:
    """Return the seconds after which metrics expire without a successful refresh.

    Args:
        interval: seconds between refreshes. Metrics never expire before the next
            refresh is overdue; a scarce request budget makes short intervals longer.
    """
    if setting is not None:
        return max(setting, OVERDUE_INTERVALS * max(interval, CONTENDED_INTERVAL))
    return max(MIN_MAX_AGE, 3 * interval)


class NotRead(Enum):
    """Why a resource is not read, with the words for the log.

    It is no failure. Of the restricted ones only the peers are requested, so that `up`
    is known. A resource that is off has no state.
    """

    REFUSED = "this token may not read {resource}"
    ABSENT = "the NetBird API does not have {resource}"
    RESTRICTED = "{resource} is withheld: the token's user may not read all of it"
    HAS_NO_RECORDS = (
        "{resource} is not requested: NetBird lists no object that needs it"
    )
    DORMANT = "{resource} is not requested: no provider of the Agent Network is known"


_UNSUPPORTED = frozenset({NotRead.REFUSED, NotRead.ABSENT, NotRead.HAS_NO_RECORDS})

StateWord = Literal[
    "starting", "fresh", "late", "failing", "expired", "unsupported", "restricted"
]
"""A state in one word; with `expired`, the metrics are withdrawn."""


class LastBody(Struct, frozen=True, gc=False, kw_only=True):
    """The newest good body: its digests, and the counts of its records.

    Attributes:
        digest: equal for equal bodies of one path.
        digest_without_times: likewise, without `last_seen` of connected records; () if
            the records were not the same as those of the body before.
        errors: the errors of the first rejected records.
        recognized: known records, which make decoding the next body faster.
        unknown: fields and values that this version does not know; of a long list
            those of its earlier bodies, too.
    """

    digest: tuple[Hashable, ...]
    digest_without_times: tuple[Hashable, ...] = ()
    records: int
    rejected: int
    errors: tuple[str, ...]
    recognized: KnownRecords
    unknown: Unknown = NOTHING_UNKNOWN


class ResourceState(Struct, frozen=True, gc=False, kw_only=True):
    """The schedule of a resource, the results of its refreshes, and what is logged.

    The times of the schedule are seconds of the clock. All since `ended_at` are seconds
    since the epoch.

    Attributes:
        due: when the next refresh may start; None while one runs, and before the start
            of the schedule for one that is due then.
        began: when the running refresh began; None while none runs.
        is_silent: True if the running refresh has no response header yet.
        backoff: seconds to wait after the newest failure, where the interval is not
            shorter; 0 after a good answer.
        is_absent: True if the newest answer was that the upstream lacks the path.
        rests_until: the earliest next refresh, because this one was costly.
        early_at: when the newest refresh that findings were waiting for began.
        path: the last path that was requested; None if it was not known.
        window_ends: when a time window or a day ends, so that the metrics change.
        body: None before the first good body, and after it was forgotten.

        interval: seconds between two refreshes, which a costly resource lengthens.
        ended_at: when the newest refresh ended; None before the first.
        seconds: the duration of the newest refresh: fetch, decode and render.
        error: why the newest refresh or a later request failed; None if none failed.
        failures: the number of failures in a row, the newest included.
        failing_since: when the first of the failures in a row ended.
        withdrawn: whether its metrics have expired.
        not_read: why it is not read; None if it is, or if it fails.
        last_success: when the newest successful refresh ended.
        records: of the newest successful response, as are `rejected` and `unknown`.
        unknown: fields and values that this version does not know.

        refreshes: since the start, the failed ones included.
        failure_logged: True if the log says that refreshes fail or metrics expired.
        reported: the errors of records in the log, without the records' places.
        reported_at: when they were logged, in seconds of the clock.
    """

    due: float | None = None
    began: float | None = None
    is_silent: bool = False
    backoff: float = 0.0
    is_absent: bool = False
    rests_until: float = -inf
    early_at: float = -inf
    path: str | None = None
    expires: float = inf
    window_ends: float = inf
    body: LastBody | None = None

    interval: float
    ended_at: float | None = None
    seconds: float = 0.0
    error: UpstreamError | None = None
    failures: int = 0
    failing_since: float | None = None
    withdrawn: bool = False
    not_read: NotRead | None = None
    last_success: float | None = None
    records: int = 0
    rejected: int = 0
    unknown: Unknown = NOTHING_UNKNOWN

    refreshes: int = 0
    failed_refreshes: int = 0
    failure_logged: bool = False
    reported: frozenset[str] = frozenset()
    reported_at: float = -inf

    @property
    def restricted(self) -> bool:
        """True if the token's user may not read all of it."""
        return self.not_read is NotRead.RESTRICTED

    @property
    def supported(self) -> bool | None:
        """True if the NetBird API offers all of it to the token; None if unknown."""
        if self.restricted or self.not_read in _UNSUPPORTED:
            return False
        return None if self.last_success is None else True

    @property
    def up(self) -> bool | None:
        """True if the last refresh succeeded and is not withdrawn; None if unknown.

        Peers that are held back are not known yet.
        """
        if self.error is not None or self.withdrawn:
            return False
        if self.not_read in _UNSUPPORTED:
            return None
        is_withheld = self.restricted and self.ended_at is not None
        return True if is_withheld or self.last_success is not None else None

    def word(self, now: float) -> StateWord:
        """Return the state in a word, at a time in seconds since the epoch."""
        if self.error is not None:
            return "failing"
        if self.not_read in _UNSUPPORTED:
            return "unsupported"
        if self.withdrawn:
            return "expired"
        if self.restricted:
            return "restricted"
        if self.last_success is None:
            return "starting"
        late = now - self.last_success > OVERDUE_INTERVALS * self.interval
        return "late" if late else "fresh"

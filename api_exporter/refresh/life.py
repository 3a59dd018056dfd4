"""The life of a resource: its state between two refreshes."""

from collections.abc import Hashable, ItemsView, Iterator, Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.record_cache import KnownRecords
from api_exporter.netbird.unknown import NOTHING_UNKNOWN, Unknown
from api_exporter.telemetry.freshness import Freshness


class LastBody(Struct, frozen=True, gc=False, kw_only=True):
    """The newest good body: its hash, and the counts of its records.

    Attributes:
        digest: equal for equal bodies of one path.
        errors: the errors of the first rejected records.
        recognized: known records, which make decoding the next body faster.
        unknown: fields and values that this version does not know; of a long list
            those of its earlier bodies, too.
    """

    digest: tuple[Hashable, ...]
    records: int
    rejected: int
    errors: tuple[str, ...]
    recognized: KnownRecords
    unknown: Unknown = NOTHING_UNKNOWN


class ReportedRejections(Struct, frozen=True):
    """The newest log lines about rejected records.

    Attributes:
        kinds: the errors, without the records' places; empty after a good response.
        at: when they were logged, in seconds of the clock.
    """

    kinds: frozenset[str]
    at: float


class ResourceLife(Struct, gc=False, kw_only=True):
    """The state of one resource. Times are seconds of the clock.

    Attributes:
        period: seconds between two refreshes.
        due: when the next refresh may start; None while one runs, and before the start
            of the schedule for one that is due then.
        began: when the running refresh began; None while none runs.
        is_silent: True if the running refresh has no response header yet.
        failures: failed refreshes in a row, which delay the next one.
        is_absent: True if the upstream answered that it lacks the path.
        rests_until: the earliest next refresh, because this one was costly.
        early_at: when the newest refresh that findings were waiting for began.
        path: the last path that was requested; None if it was not known.
        window_ends: when a time window or a day ends, so that the metrics change.
        body: None before the first good body, and after it was forgotten.
        freshness: None while the resource is dormant.
        failure_logged: True if the log says that refreshes fail or metrics expired.
        needless_logged: True if the log says that the resource is not requested.
    """

    period: float
    due: float | None = None
    began: float | None = None
    is_silent: bool = False
    failures: int = 0
    is_absent: bool = False
    rests_until: float = -inf
    early_at: float = -inf
    path: str | None = None
    expires: float = inf
    window_ends: float = inf
    body: LastBody | None = None
    freshness: Freshness | None = None
    failure_logged: bool = False
    needless_logged: bool = False
    rejections: ReportedRejections | None = None

    @property
    def known_freshness(self) -> Freshness:
        """The freshness of a resource that is not dormant."""
        assert self.freshness is not None
        return self.freshness

    def wake(self) -> None:
        if self.freshness is None:
            self.freshness = Freshness(period=self.period)

    def with_period(self, period: float, now: float) -> "ResourceLife":
        """Return the life with another period, within which the next refresh is due."""
        due = None if self.due is None else min(self.due, now + period)
        freshness = self.freshness and replace(self.freshness, period=period)
        return replace(self, period=period, due=due, freshness=freshness)

    def sleep(self) -> None:
        """Make the resource dormant: clear its end times and its freshness."""
        self.path, self.expires, self.window_ends = None, inf, inf
        self.freshness, self.needless_logged = None, False


Lives = Mapping[str, ResourceLife]
"""The state by resource, in the order of the first refreshes."""


def lives(periods: Mapping[str, float]) -> dict[str, ResourceLife]:
    return {
        name: ResourceLife(period=period, freshness=Freshness(period=period))
        for name, period in periods.items()
    }


class FreshnessByName(Mapping[str, Freshness]):
    """The freshness of all resources that are not dormant."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def __getitem__(self, name: str) -> Freshness:
        freshness = self._lives[name].freshness
        if freshness is None:
            raise KeyError(name)
        return freshness

    def __iter__(self) -> Iterator[str]:
        return (n for n, life in self._lives.items() if life.freshness is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> ItemsView[str, Freshness]:
        """Return all at once: a scrape needs them for each metric."""
        known = ((name, life.freshness) for name, life in self._lives.items())
        return {name: fresh for name, fresh in known if fresh is not None}.items()

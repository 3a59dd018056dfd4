"""The findings of one account, looked for again after each refresh."""

from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from api_exporter.attention.finders import FINDERS, Finder, find, unknown
from api_exporter.attention.finding import Finding, Snapshot
from api_exporter.attention.fleet import dropped
from api_exporter.attention.thresholds import SEVERITIES, Severity, Thresholds, shipped
from api_exporter.exposition.memo import MemoResult
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.ports import Now
from api_exporter.telemetry.freshness import Freshness

Ends = Callable[[], tuple[float | None, float | None]]
"""When certificates end: the upstream's, our own; None for one that is not known."""


class FindingList(Struct, frozen=True, kw_only=True):
    """What was found at some time.

    Attributes:
        findings: the worst first. All are kept: a finder makes at most three for each
            record that it looks at, of 0.5 kB each, and none of them for each peer.
        unknown: resources in which nothing could be looked for.
        counts: of all severities, the worst first; empty while nothing is known at all.
    """

    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    counts: Mapping[str, int] = {}


class FinderResult:
    """What one finder has found, by severity."""

    def __init__(self) -> None:
        self.by_severity: dict[Severity, list[Finding]] = {}

    def add(self, finding: Finding) -> None:
        self.by_severity.setdefault(finding.severity, []).append(finding)


NOTHING_FOUND = FinderResult()
"""Of most finders in all accounts."""


class Attention:
    """What needs attention in one account.

    Args:
        inventory: what is known of its network.
        standings: by resource.
        chosen: IMPORTANT_GROUPS.
        thresholds: None for those that came with the program.

    Attributes:
        found: the newest.
    """

    def __init__(
        self,
        inventory: Callable[[], Inventory],
        *,
        standings: Mapping[str, Freshness],
        now: Now,
        chosen: tuple[str, ...] = (),
        thresholds: Thresholds | None = None,
        ends: Ends = lambda: (None, None),
    ) -> None:
        self.found = FindingList()
        self._inventory = inventory
        self._standings = standings
        self._now = now
        self._chosen = chosen
        self._ends = ends
        self._thresholds = thresholds or shipped()
        self._by: dict[Finder, FinderResult] = {}
        self._changes: Mapping[str, object] = {}  # of the newest look
        # What the peers alone decide is looked for once after each of their rounds.
        self._drop = self._dropped(Inventory(), 0.0)

    def look(self, resource: str) -> Generator[None, None, None]:
        """Look anew for what refreshes have changed, this one the newest.

        After one of the peers for everything: some findings only wait for their day.
        It has places to pause.
        """
        inventory, now = self._inventory(), self._now()
        changed = {
            name
            for name, change in inventory.changes.items()
            if change is not self._changes.get(name)
        }
        if resource == UP or UP in changed:
            self._drop = self._dropped(inventory, now)
        snapshot = self._snapshot(inventory, self._standings, now, self._drop)
        finders = [
            finder
            for finder in FINDERS
            if resource == UP or not finder.reads or changed.intersection(finder.reads)
        ]
        yield from self._look(snapshot, finders, self._by)
        self._changes = inventory.changes
        self.found = _sum(snapshot, self._by)

    def of(
        self, inventory: Inventory, standings: Mapping[str, Freshness], now: float
    ) -> FindingList:
        """What there is in what somebody else knows."""
        drop, by = self._dropped(inventory, now), dict[Finder, FinderResult]()
        snapshot = self._snapshot(inventory, standings, now, drop)
        for _ in self._look(snapshot, FINDERS, by):
            pass
        return _sum(snapshot, by)

    def _look(
        self,
        snapshot: Snapshot,
        finders: Sequence[Finder],
        by: dict[Finder, FinderResult],
    ) -> Generator[None, None, None]:
        for finder in finders:
            few = FinderResult()
            for finding in find(finder, snapshot):
                if finding is not None:
                    few.add(finding)
                yield
            by[finder] = few if few.by_severity else NOTHING_FOUND
            yield

    def _dropped(self, inventory: Inventory, now: float) -> MemoResult[float | None]:
        return MemoResult(dropped(inventory.peers or (), now, self._thresholds))

    def _snapshot(
        self,
        inventory: Inventory,
        standings: Mapping[str, Freshness],
        now: float,
        drop: MemoResult[float | None],
    ) -> Snapshot:
        upstream_ends, own_ends = self._ends()
        return Snapshot(
            inventory=inventory,
            thresholds=self._thresholds,
            now=now,
            drop=drop,
            standings=standings,
            chosen=self._chosen,
            upstream_ends=upstream_ends,
            own_ends=own_ends,
        )


def _sum(snapshot: Snapshot, by: Mapping[Finder, FinderResult]) -> FindingList:
    every = [by[finder].by_severity for finder in FINDERS if finder in by]
    lists = {s: [few[s] for few in every if s in few] for s in SEVERITIES}
    counts: dict[str, int] = {s: sum(map(len, few)) for s, few in lists.items()}
    return FindingList(
        findings=tuple(chain.from_iterable(chain.from_iterable(lists.values()))),
        unknown=unknown(snapshot),
        counts=counts if snapshot.standings[UP].up is not None else {},
    )

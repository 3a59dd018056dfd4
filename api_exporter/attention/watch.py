"""The findings of one account, updated after each refresh."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.finders import FINDERS, find, unknown
from api_exporter.attention.finding import Finder, Finding, Snapshot
from api_exporter.attention.fleet import drop_at
from api_exporter.attention.thresholds import (
    SEVERITIES,
    Severity,
    Thresholds,
    default_thresholds,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.ports import Now
from api_exporter.telemetry.freshness import Freshness

CertificateExpiries = Callable[[], tuple[float | None, float | None]]
"""Returns when the API's and the exporter's certificates expire; None if unknown."""


class FindingList(Struct, frozen=True, kw_only=True):
    """The findings at one time.

    Attributes:
        findings: the most severe first. All are kept: a finder makes at most three for
            each record, of 0.5 kB each, and none for each peer.
        unknown: unknown resources, because of which findings may be missing.
        counts: by severity, the most severe first; empty before the peers are known.
    """

    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    counts: Mapping[str, int] = MappingProxyType({})


FindingsByFinder = Mapping[Finder, Mapping[Severity, Sequence[Finding]]]
"""The findings of each finder by severity; most finders have none."""

_NO_FINDINGS: Mapping[Severity, Sequence[Finding]] = MappingProxyType({})


class AttentionState(Struct, frozen=True, kw_only=True):
    """The findings after a refresh, and the state for the next update.

    Attributes:
        changes: those of the inventory, which show what has changed since.
        drop: when many peers went offline at once, as of the newest peers, or None.
    """

    changes: Mapping[str, object] = MappingProxyType({})
    drop: float | None = None
    by_finder: FindingsByFinder = MappingProxyType({})
    found: FindingList = FindingList()


class Attention:
    """The findings of one account.

    Args:
        inventory: returns the newest inventory.
        freshness: the freshness of each resource.
        chosen: IMPORTANT_GROUPS.
        thresholds: None for the shipped ones.

    Attributes:
        last: the result of the newest update.
    """

    def __init__(
        self,
        inventory: Callable[[], Inventory],
        *,
        freshness: Mapping[str, Freshness],
        now: Now,
        chosen: tuple[str, ...] = (),
        thresholds: Thresholds | None = None,
        ends: CertificateExpiries = lambda: (None, None),
    ) -> None:
        self._inventory = inventory
        self._freshness = freshness
        self._now = now
        self._chosen = chosen
        self._ends = ends
        self._thresholds = thresholds or default_thresholds()
        self.last = AttentionState()

    @property
    def found(self) -> FindingList:
        """The newest findings."""
        return self.last.found

    def snapshot(self) -> Snapshot:
        """Return the current snapshot."""
        return self._snapshot(self._inventory(), self._freshness, self._now())

    def of(
        self, inventory: Inventory, freshness: Mapping[str, Freshness], now: float
    ) -> FindingList:
        """Return the findings of another inventory."""
        return update_findings(
            self._snapshot(inventory, freshness, now), UP, AttentionState()
        ).found

    def _snapshot(
        self, inventory: Inventory, freshness: Mapping[str, Freshness], now: float
    ) -> Snapshot:
        upstream_ends, own_ends = self._ends()
        return Snapshot(
            inventory=inventory,
            thresholds=self._thresholds,
            now=now,
            freshness=MappingProxyType(dict(freshness)),
            chosen=self._chosen,
            upstream_ends=upstream_ends,
            own_ends=own_ends,
        )


def update_findings(
    snapshot: Snapshot, resource: str, last: AttentionState
) -> AttentionState:
    """Return the findings after a refresh.

    A finder runs again if a resource that it reads has changed. A refresh of the peers
    runs all finders: some findings depend on the time alone.

    Args:
        resource: the refreshed resource.
        last: the result of the previous update.
    """
    inventory, changes = snapshot.inventory, snapshot.inventory.changes
    changed = {name for name in changes if changes[name] is not last.changes.get(name)}
    drop, everything = last.drop, resource == UP
    if everything or UP in changed:
        drop = drop_at(inventory.peers or (), snapshot.now, snapshot.thresholds)
    snapshot = replace(snapshot, drop=drop)
    by_finder = {
        finder: _by_severity(find(finder, snapshot))
        for finder in FINDERS
        if everything or not finder.reads or changed.intersection(finder.reads)
    }
    by_finder = {**last.by_finder, **by_finder}
    found = _combined(snapshot, by_finder)
    return AttentionState(
        changes=changes, drop=drop, by_finder=MappingProxyType(by_finder), found=found
    )


def _by_severity(findings: Iterable[Finding]) -> Mapping[Severity, Sequence[Finding]]:
    found: dict[Severity, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.severity, []).append(finding)
    if not found:
        return _NO_FINDINGS
    return MappingProxyType({severity: (*few,) for severity, few in found.items()})


def _combined(snapshot: Snapshot, by_finder: FindingsByFinder) -> FindingList:
    every = [by_finder[finder] for finder in FINDERS if finder in by_finder]
    lists = {s: [few[s] for few in every if s in few] for s in SEVERITIES}
    counts: dict[str, int] = {s: sum(map(len, few)) for s, few in lists.items()}
    return FindingList(
        findings=tuple(chain.from_iterable(chain.from_iterable(lists.values()))),
        unknown=unknown(snapshot),
        counts=MappingProxyType(
            counts if snapshot.freshness[UP].up is not None else {}
        ),
    )

"""The findings of one account, updated after each refresh."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain, groupby, islice
from math import inf
from operator import attrgetter
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.confirmation import (
    MAX_WAIT,
    Wait,
    Waits,
    awaited_lists,
    first_wait,
)
from api_exporter.attention.finding import (
    Finder,
    Finding,
    FindingKey,
    Snapshot,
    join_lines,
)
from api_exporter.attention.fleet import drop_at
from api_exporter.attention.thresholds import SEVERITIES, Lifetime
from api_exporter.exposition.text import truncate
from api_exporter.netbird.resources import PEERS
from api_exporter.netbird.routing import Reach
from api_exporter.subjects import networks, routes
from api_exporter.subjects.groups import GroupCount, count_important
from api_exporter.subjects.table import FINDERS, RESOURCE_BY_NAME

_READ = frozenset(name for finder in FINDERS for name in finder.reads)


def can_find(finder: Finder, snapshot: Snapshot) -> bool:
    is_blind = finder.hidden_in_outage and snapshot.peers_unreadable
    return not is_blind and not _unknown(snapshot, finder)


def find(finder: Finder, snapshot: Snapshot) -> Iterator[Finding]:
    if not can_find(finder, snapshot):
        return
    keys = set()
    for finding in finder.find(snapshot):
        is_hidden = finder.hidden_in_outage and snapshot.is_part_of_drop(finding)
        if not is_hidden and finding.key not in keys:
            keys.add(finding.key)
            yield finding


def unknown_resources(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the resources without data: findings over them may be missing."""
    missing = _READ - snapshot.inventory.records.keys()
    return tuple(
        name
        for name, state in snapshot.states.items()
        if name in missing and (state.supported is not False or state.restricted)
    )


def has_untried(snapshot: Snapshot) -> bool:
    """Return whether a resource that finders read is still to be requested.

    One without a path is not: the token's user may stay unknown.
    """
    inventory, now = snapshot.inventory, snapshot.now
    return any(
        RESOURCE_BY_NAME[name].request_path(inventory, now) is not None
        for name, state in snapshot.states.items()
        if state.up is None and state.supported is None and name in _READ
    )


def _unknown(snapshot: Snapshot, finder: Finder) -> list[str]:
    return [name for name in finder.reads if name not in snapshot.inventory.records]


CertificateLifetimes = Callable[[], tuple[Lifetime | None, Lifetime | None]]
"""Returns the lifetimes of the API's and the exporter's certificates; None if unknown.
"""


class FindingList(Struct, frozen=True, kw_only=True):
    """The findings at one time.

    Attributes:
        findings: the most severe first. All are kept: a finder makes at most three for
            each record, of 0.5 kB each.
        lines: the findings with one line for many peers, for people.
        unknown: unknown resources, because of which findings may be missing.
        counts: by severity, the most severe first; empty before the network is known.
        series: the time since which a finding holds, by its labels: name, severity,
            type, id and name of its object. There are at most 50 of each finding.
        omitted: the number of findings without a series, by name.
    """

    findings: tuple[Finding, ...] = ()
    lines: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()
    counts: Mapping[str, int] = MappingProxyType({})
    series: Mapping[tuple[str, ...], float] = MappingProxyType({})
    omitted: Mapping[str, int] = MappingProxyType({})
    kept_back: int = 0


MAX_OF_FINDING = 50

MAX_SERIES = 500

FindingsByFinder = Mapping[Finder, tuple[Finding, ...]]


class KeptFindings(Struct, frozen=True, kw_only=True):
    """The findings after a refresh, and the state for the next update.

    Attributes:
        versions: those of the inventory, which show what has changed since.
        started_at: when the exporter started, seconds since the epoch.
        drop_at: when many of the newest peers went offline at once, or None.
        known: the finders that knew all that they read.
        former: the last findings of the others, from when they knew all.
        waits: by key, the findings in `by_finder` that are not reported yet, the most
            severe first.
        awaited: the lists that they wait for, the most severe finding's first; none
            before all lists were read once, or MAX_WAIT after the start.
        began: the time of the first update with known peers, in seconds of the clock.
    """

    versions: Mapping[str, object] = MappingProxyType({})
    started_at: float = 0.0
    drop_at: float | None = None
    known: frozenset[Finder] = frozenset()
    former: FindingsByFinder = MappingProxyType({})
    by_finder: FindingsByFinder = MappingProxyType({})
    waits: Waits = MappingProxyType({})
    awaited: tuple[str, ...] = ()
    began: float = inf
    has_counts: bool = False
    found: FindingList = FindingList()
    groups: tuple[GroupCount, ...] | None = None
    networks: Reach | None = None
    routes: Reach | None = None


def update_findings(
    snapshot: Snapshot, resource: str, last: KeptFindings
) -> KeptFindings:
    """Return the findings after a refresh.

    A finder runs again if a resource that it reads has changed. A refresh of the peers
    runs all finders: some findings depend on the time alone.
    """
    inventory, versions = snapshot.inventory, snapshot.inventory.versions
    changed = {
        name for name in versions if versions[name] is not last.versions.get(name)
    }
    drop, everything = last.drop_at, resource == PEERS
    if everything or PEERS in changed:
        drop = drop_at(inventory.peers or (), snapshot.now, snapshot.thresholds)
    snapshot = replace(snapshot, drop_at=drop)
    by_finder = {
        finder: tuple(_dated(find(finder, snapshot), finder, snapshot.now, last))
        for finder in FINDERS
        if everything or not finder.reads or changed.intersection(finder.reads)
    }
    every = MappingProxyType({**last.by_finder, **by_finder})
    waits = _waits(snapshot, resource, every, last, changed)
    is_up = snapshot.states[PEERS].up is True
    began = min(last.began, snapshot.seconds) if is_up else last.began
    seconds, untried = snapshot.seconds - began, has_untried(snapshot)
    has_begun = not waits and not untried
    known = frozenset(
        f
        for f in every
        if can_find(f, snapshot) and (f in by_finder or f in last.known)
    )
    former = {f: _former(f, last) for f in FINDERS if f not in known}
    state = KeptFindings(
        versions=versions,
        started_at=last.started_at,
        known=known,
        former=MappingProxyType(former),
        drop_at=drop,
        by_finder=every,
        waits=waits,
        began=began,
        has_counts=last.has_counts or (is_up and (has_begun or seconds >= MAX_WAIT)),
        awaited=() if untried and seconds < MAX_WAIT else awaited_lists(waits),
        groups=count_important(snapshot) if everything or changed else last.groups,
        networks=networks.count_reachable(inventory),
        routes=routes.count_reachable(inventory),
    )
    return replace(state, found=_combined(snapshot, state))


def _waits(
    snapshot: Snapshot,
    resource: str,
    by_finder: FindingsByFinder,
    last: KeptFindings,
    changed: Set[str],
) -> Waits:
    """Return what is kept back: see Note [Found again]."""
    readings, seconds = snapshot.inventory.readings, snapshot.seconds
    standing = snapshot.states.get(resource)
    failed = resource if standing is not None and standing.error is not None else None
    before = {f.key for _, f in _of_several_lists(last.by_finder)}
    found: dict[FindingKey, Wait] = {}
    every = _of_several_lists(by_finder)
    for finder, finding in sorted(every, key=lambda pair: _rank(pair[1])):
        key, wait = finding.key, None
        if key in last.waits:
            wait = last.waits[key].after(readings, failed, seconds)
        elif key not in before:
            wait = first_wait(finder.reads, readings, changed, seconds)
        if wait is not None:
            found[key] = wait
    return MappingProxyType(found)


def _of_several_lists(found: FindingsByFinder) -> Iterator[tuple[Finder, Finding]]:
    return ((r, f) for r, own in found.items() if len(r.reads) > 1 for f in own)


def _rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def _dated(
    findings: Iterable[Finding], finder: Finder, now: float, last: KeptFindings
) -> Iterator[Finding]:
    """Yield the findings with the time at which each one was first found.

    That is the start for new ones of a finder that could find nothing before: nothing
    says that these are new.
    """
    before = {f.key: f.found_at for f in _former(finder, last)}
    new_at = now if finder in last.known else last.started_at
    for finding in findings:
        yield replace(finding, found_at=before.get(finding.key, new_at))


def _former(finder: Finder, last: KeptFindings) -> tuple[Finding, ...]:
    """Return what a finder found when it last knew all that it reads."""
    found = last.by_finder if finder in last.known else last.former
    return found.get(finder, ())


def _published(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that have a series, the most severe first."""
    order = sorted(findings, key=lambda f: (_rank(f), f.key))
    few = (islice(own, MAX_OF_FINDING) for _, own in groupby(order, _name))
    return islice(chain.from_iterable(few), MAX_SERIES)


_name = attrgetter("kind.name")


def _series(findings: Iterable[Finding]) -> Mapping[tuple[str, ...], float]:
    """Return the samples by their labels, which are cut: of equal ones the latest."""
    found: dict[tuple[str, ...], float] = {}
    for f in findings:
        of = f.kind.name, f.severity, f.kind.object_type, f.object_id, f.object
        labels, since = tuple(map(truncate, of)), f.since
        since = f.found_at if since is None else since
        found[labels] = max(since, found.get(labels, since))
    return MappingProxyType(found)


def _combined(snapshot: Snapshot, state: KeptFindings) -> FindingList:
    every = (f for finder in FINDERS for f in state.by_finder.get(finder, ()))
    findings = tuple(sorted((f for f in every if f.key not in state.waits), key=_rank))
    counts = Counter(finding.severity for finding in findings)
    peers_up = snapshot.states[PEERS].up
    has_counts = peers_up is False or (peers_up is True and state.has_counts)
    series = _series(_published(findings))
    omitted = Counter(map(_name, findings))
    omitted.subtract(name for name, *_ in series)
    return FindingList(
        findings=findings,
        series=series,
        omitted=MappingProxyType(dict(+omitted)),
        lines=tuple(join_lines(findings)),
        unknown=unknown_resources(snapshot),
        counts=MappingProxyType(
            {severity: counts[severity] for severity in SEVERITIES}
            if has_counts
            else {}
        ),
        kept_back=len(state.waits),
    )

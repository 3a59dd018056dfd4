"""An inventory, and the findings in it."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finding import Finding, Snapshot, join_lines
from api_exporter.attention.fleet import drop_at
from api_exporter.attention.thresholds import (
    SEVERITIES,
    Lifetime,
    Thresholds,
    default_thresholds,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Member, Peer
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.ports import Now
from api_exporter.subjects.table import FINDERS
from api_exporter.subjects.watch import (
    CertificateLifetimes,
    FindingList,
    KeptFindings,
    find,
)

NOW = 1_800_000_000.0
HOUR, DAY = 3600.0, 86400.0


def at(seconds: float) -> datetime:
    """Return the time so many seconds from now."""
    return datetime.fromtimestamp(NOW + seconds, UTC)


def peer(id_: str, *, connected: bool = True, since: float = -HOUR) -> Peer:
    return Peer(id=id_, name=id_, connected=connected, last_seen=at(since))


def group(name: str, *peers: str) -> Group:
    members = tuple(Member(id=id_, name=id_) for id_ in peers)
    return Group(id=f"g-{name}", name=name, peers=members, peers_count=len(peers))


def seen(
    inventory: Inventory,
    *,
    now: float = NOW,
    states: Mapping[str, ResourceState] | None = None,
    chosen: tuple[str, ...] = (),
    thresholds: Thresholds | None = None,
    server_certificate: Lifetime | None = None,
    client_certificate: Lifetime | None = None,
) -> Snapshot:
    return Snapshot(
        inventory=inventory,
        thresholds=thresholds or default_thresholds(),
        now=now,
        seconds=now,
        drop_at=drop_at(inventory.peers or (), now, thresholds or default_thresholds()),
        states=states or {},
        important_groups=chosen,
        server_certificate=server_certificate,
        client_certificate=client_certificate,
    )


@dataclass
class FindingsKeeper:
    """The findings of one account, without a network that keeps them.

    Attributes:
        clock: returns seconds of a clock that is never set.
    """

    inventory: Callable[[], Inventory]
    _: KW_ONLY
    states: Mapping[str, ResourceState]
    now: Now
    clock: Now
    important_groups: tuple[str, ...] = ()
    thresholds: Thresholds = field(default_factory=default_thresholds)
    certificate_lifetimes: CertificateLifetimes = lambda: (None, None)

    def __post_init__(self) -> None:
        self.last = KeptFindings(started_at=self.now())

    @property
    def found(self) -> FindingList:
        return self.last.found

    def snapshot(self) -> Snapshot:
        server_certificate, client_certificate = self.certificate_lifetimes()
        return Snapshot(
            inventory=self.inventory(),
            thresholds=self.thresholds,
            now=self.now(),
            seconds=self.clock(),
            states=MappingProxyType(dict(self.states)),
            important_groups=self.important_groups,
            server_certificate=server_certificate,
            client_certificate=client_certificate,
        )


def findings(looked: Snapshot) -> list[Finding]:
    """Return all findings, the most severe first."""
    every = (finding for finder in FINDERS for finding in find(finder, looked))
    return sorted(every, key=lambda one: SEVERITIES.index(one.severity))


def told(looked: Snapshot | Inventory) -> list[str]:
    """Return each line as text: alert, sentence and time, in seconds from NOW."""
    if isinstance(looked, Inventory):
        looked = seen(looked)
    return [
        f"{one.alert}: {one.text}{_time(one.since, 'since')}{_time(one.until, 'until')}"
        for one in join_lines(findings(looked))
    ]


def _time(at: float | None, word: str) -> str:
    return "" if at is None else f" ({word} {at - NOW:.0f})"


class FindingsTestCase(SynchronousTestCase):
    maxDiff = None

    def tells(self, looked: Snapshot | Inventory, *lines: str) -> None:
        """Check all findings: see `told`. An empty line is none."""
        self.assertEqual([line for line in lines if line], told(looked))

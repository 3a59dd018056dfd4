"""A finding, a finder, and the snapshot of an account that a finder reads."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.thresholds import Lifetime, Severity, Thresholds
from api_exporter.formatting import list_names, safe_line
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.members import Named
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import PEERS


class Members(Struct, frozen=True):
    """The members of a group, without those that the list of peers lacks.

    Attributes:
        offline_since: when these were last seen, as far as known.
    """

    peer_count: int
    offline: list[Peer]
    offline_since: list[float]
    expired: list[Peer]


Label = tuple[str, str, str]
"""A label of an alert, its source (`object_id` or `object`), and a pattern.

The group of the pattern is the value of the label.
"""


FindingKey = tuple[str, str, str]
"""Name of the finding, type and id of its object: see `Finding.key`."""


class FindingKind(Struct, frozen=True):
    """A kind of finding. Its name is also the name of its alert.

    Attributes:
        noun: begins the sentence, before the name of the object: `Network`.
        object_type: `account` for what concerns the whole account.
        lasts: how long a finding must last until the alert fires, such as `5m`; ""
            without an alert, if the message of the finding says what to do.
        summary: a template over the alert's labels, as the description.
        keep: how long the alert goes on after the finding has ended.
        own_labels: in place of `TYPE_id` and `TYPE`, the object's id and name.
        many: subject and verb of the line that joins several findings: `{} peers`.
    """

    name: str
    noun: str
    object_type: str = "account"
    lasts: str = ""
    summary: str = ""
    description: str = ""
    keep: str = "5m"
    own_labels: tuple[Label, ...] = ()
    many: tuple[str, str] | None = None

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of the alert that identify the object."""
        if self.own_labels:
            return self.own_labels
        if self.object_type == "account":
            return ()
        kind = self.object_type
        return ((f"{kind}_id", "object_id", "(.+)"), (kind, "object", "(.+)"))


class Finding(Struct, frozen=True, gc=False, kw_only=True):
    """Something that needs attention.

    Attributes:
        object_id: "" for what concerns the whole account.
        object: the bare name; "" if PEER_DETAIL or the rules for personal data hide it.
        subject: the subject of the sentence, such as `Network depot`.
        message: the rest of the sentence.
        since: when it began, seconds since the epoch; None if unknown.
        until: when the object expires; None if it does not, or has expired.
        found_at: when it was first found; the start, if it was there before.
        count: of the findings that this line joins.
    """

    kind: FindingKind
    severity: Severity
    object_id: str
    object: str
    subject: str
    message: str
    since: float | None
    until: float | None
    found_at: float = 0.0
    count: int = 1

    @property
    def key(self) -> FindingKey:
        """The identity: at one time, no two findings of an account share it."""
        return self.kind.name, self.kind.object_type, self.object_id

    @property
    def alert(self) -> str:
        """The matching alert; "" if the message says what to do."""
        return self.kind.name if self.kind.lasts else ""

    @property
    def text(self) -> str:
        return f"{self.subject} {self.message}"


def join_lines(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings as lines: several of a kind with `many` become one line.

    It stands where the first of them does.
    """
    several: dict[str, list[Finding]] = {}
    for one in findings:
        several.setdefault(one.kind.name, []).append(one)
    for one in findings:
        if one.kind.many is None:
            yield one
        elif of_kind := several.pop(one.kind.name, None):
            yield _joined(one.kind.many, of_kind)


def _joined(many: tuple[str, str], findings: Sequence[Finding]) -> Finding:
    if len(findings) == 1:
        return findings[0]
    subject, verb = many
    begins = [finding.since for finding in findings if finding.since is not None]
    ends = [finding.until for finding in findings if finding.until is not None]
    return replace(
        findings[0],
        object_id="",
        object="",
        subject=subject.format(f"{len(findings):,}"),
        message=f"{verb}{list_names(filter(None, (f.object for f in findings)))}.",
        since=min(begins, default=None),
        until=min(ends, default=None),
        found_at=min(finding.found_at for finding in findings),
        count=len(findings),
    )


class Snapshot(Struct, frozen=True, kw_only=True, dict=True):
    """The data from which findings are computed.

    Attributes:
        drop_at: when many peers went offline at once, or None.
        states: by resource, for all requested resources.
        important_groups: IMPORTANT_GROUPS; empty for the groups of the thresholds.
        server_certificate: the lifetime of the NetBird API's certificate; None if it
            is unknown or missing.
        client_certificate: likewise, for the exporter's client certificate.
        seconds: the time of a clock that is never set.
    """

    inventory: Inventory
    thresholds: Thresholds
    now: float
    seconds: float
    drop_at: float | None = None
    states: Mapping[str, ResourceState] = {}
    important_groups: tuple[str, ...] = ()
    server_certificate: Lifetime | None = None
    client_certificate: Lifetime | None = None

    @property
    def important(self) -> Sequence[str]:
        """Names and ids of the groups in which every peer matters."""
        return self.important_groups or self.thresholds.groups.important

    @cached_property
    def peers(self) -> Mapping[str, Peer]:
        return {peer.id: peer for peer in self.inventory.peers or ()}

    @cached_property
    def members(self) -> dict[str, Members]:
        """Members by group id: a cache that the finders fill."""
        return {}

    @property
    def peers_unreadable(self) -> bool:
        return PEERS in self.states and self.states[PEERS].up is False

    def is_part_of_drop(self, finding: "Finding") -> bool:
        """Return whether a finding began with, or after, a drop of the whole fleet."""
        if self.drop_at is None or finding.since is None:
            return False
        return finding.since >= self.drop_at

    def finding(
        self,
        kind: FindingKind,
        message: str,
        of: Named | None = None,
        *,
        object_id: str = "",
        name: str = "",
        subject: str = "",
        since: float | None = None,
        until: float | None = None,
    ) -> Finding:
        """Return a finding with the severity of its kind.

        An `until` that has passed becomes `since`.

        Args:
            of: the object, unless its id and name are given.
            name: the bare name of the object; "" if it is hidden.
            subject: in place of noun and name.
        """
        if until is not None and until <= self.now:
            since, until = until, None
        if of is not None:
            object_id, name = of.id, name or of.name or of.id
        of_one = f"1 {kind.noun.lower()}" if object_id else kind.noun
        return Finding(
            kind=kind,
            severity=self.thresholds.severities[kind.name],
            object_id=object_id,
            object=name,
            subject=subject or (f"{kind.noun} {safe_line(name)}" if name else of_one),
            message=message,
            since=since,
            until=until,
        )

    def peer_name(self, peer: Peer) -> str:
        """Return the name of a peer, or "" if PEER_DETAIL hides the peer."""
        ids = self._detailed_ids
        return peer.name or peer.id if ids is None or peer.id in ids else ""

    def names(self, peers: Iterable[Peer]) -> str:
        """Return the names that PEER_DETAIL allows, as text: see `list_names`."""
        return list_names(filter(None, map(self.peer_name, peers)))

    @cached_property
    def _detailed_ids(self) -> Container[str] | None:
        return self.inventory.detailed_peer_ids()


class Finder(Struct, frozen=True, eq=False):
    """A function that yields findings of some kinds, and the resources that it reads.

    Attributes:
        reads: while one of them is unknown, there are no findings.
        hidden_in_outage: True for findings about one object. They are hidden while the
            peers cannot be read, and if they began with a drop of the fleet.
    """

    find: Callable[[Snapshot], Iterator[Finding]]
    kinds: tuple[FindingKind, ...]
    reads: tuple[str, ...] = ()
    hidden_in_outage: bool = False

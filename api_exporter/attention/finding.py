"""A finding, a finder, and the snapshot of an account that a finder reads."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from unicodedata import category

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.lifetime import Lifetime
from api_exporter.attention.thresholds import Severity, Thresholds, runbook_url
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import UP
from api_exporter.telemetry.freshness import Freshness

MAX_NAMED = 3
"""Maximum number of objects that a finding names."""

MAX_NAME_LENGTH = 60
"""Maximum number of characters of a name in a finding."""


class Members(Struct, frozen=True):
    """The members of a group, without those that the list of peers lacks.

    Attributes:
        offline_since: when these were last seen, as far as known.
    """

    peer_count: int
    offline: list[Peer]
    offline_since: list[float]
    expired: list[Peer]


class Finding(Struct, frozen=True, kw_only=True):
    """Something that needs attention.

    Attributes:
        object: the subject of the sentence, such as `Network depot`.
        message: the rest of the sentence.
        since: when it began, seconds since the epoch; None if unknown.
        until: when the object expires; None if it does not, or has expired.
        alert: the matching alert; "" if the message says what to do.
    """

    severity: Severity
    object: str
    message: str
    since: float | None = None
    until: float | None = None
    alert: str = ""

    @property
    def text(self) -> str:
        return f"{self.object} {self.message}"

    def runbook(self, runbooks: str) -> str:
        """Return the URL of the alert's section, or "" without an alert."""
        return self.alert and runbook_url(runbooks, self.alert)


class Snapshot(Struct, frozen=True, kw_only=True, dict=True):
    """The data from which findings are computed.

    Attributes:
        drop_at: when many peers went offline at once, or None.
        freshness: by resource, for all requested resources.
        important_groups: IMPORTANT_GROUPS; empty for the groups of the thresholds.
        server_certificate: the lifetime of the NetBird API's certificate; None if it
            is unknown or missing.
        client_certificate: likewise, for the exporter's client certificate.
        now: seconds since the epoch.
    """

    inventory: Inventory
    thresholds: Thresholds
    now: float
    drop_at: float | None = None
    freshness: Mapping[str, Freshness] = {}
    important_groups: tuple[str, ...] = ()
    server_certificate: Lifetime | None = None
    client_certificate: Lifetime | None = None

    @property
    def important(self) -> Sequence[str]:
        """Names and ids of the groups in which every peer matters."""
        return self.important_groups or self.thresholds.groups.important

    @cached_property
    def joined(self) -> "Snapshot":
        """The snapshot for finders that join resources: see Note [Joined lists]."""
        inventory = self.inventory.joined
        return (
            self if inventory is self.inventory else replace(self, inventory=inventory)
        )

    @cached_property
    def peers(self) -> Mapping[str, Peer]:
        return {peer.id: peer for peer in self.inventory.peers or ()}

    @cached_property
    def members(self) -> dict[str, Members]:
        """Members by group id: a cache that the finders fill."""
        return {}

    @property
    def peers_unreadable(self) -> bool:
        return UP in self.freshness and self.freshness[UP].up is False

    def is_part_of_drop(self, finding: "Finding") -> bool:
        """Return whether a finding began with, or after, a drop of the whole fleet."""
        if self.drop_at is None or finding.since is None:
            return False
        return finding.since >= self.drop_at

    def finding(
        self,
        alert: str,
        object: str,  # noqa: A002 - the finding's own word
        message: str,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> Finding:
        """Return a finding with the severity of its alert.

        An `until` that has passed becomes `since`.
        """
        if until is not None and until <= self.now:
            since, until = until, None
        return Finding(
            alert=alert,
            severity=self.thresholds.severities[alert],
            object=object,
            message=message,
            since=since,
            until=until,
        )

    def names(self, peers: Sequence[Peer]) -> str:
        """Return the names that PEER_DETAIL allows, as text: see `list_names`."""
        ids = self._detailed_ids
        return list_names(p.name or p.id for p in peers if ids is None or p.id in ids)

    @cached_property
    def _detailed_ids(self) -> Container[str] | None:
        return self.inventory.detailed_peer_ids()


class Finder(Struct, frozen=True):
    """A function that yields findings, and the resources that it reads.

    Attributes:
        reads: while one of them is unknown, there are no findings.
        is_single: True if each finding is about one object. These are hidden while the
            peers cannot be read, and if they began with a drop of the fleet.
    """

    find: Callable[[Snapshot], Iterator[Finding]]
    reads: tuple[str, ...] = ()
    is_single: bool = False


def list_names(names: Iterable[str]) -> str:
    """Return text such as `: a, b, c and 2 more`, or "" without names."""
    every = list(names)
    first = ", ".join(map(safe_line, nsmallest(MAX_NAMED, every)))
    more = f" and {len(every) - MAX_NAMED:,} more" if len(every) > MAX_NAMED else ""
    return f": {first}{more}" if every else ""


def safe_line(name: str) -> str:
    """Return a name from the API, shortened and safe in a line of text.

    Invisible characters, such as line ends and marks of the writing direction, become
    replacement characters.
    """
    shown = name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"
    if shown.isprintable():
        return shown
    return "".join("\N{REPLACEMENT CHARACTER}" if _breaks(c) else c for c in shown)


def _breaks(letter: str) -> bool:
    return category(letter) in _BREAKING and letter not in _JOINERS


_BREAKING = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
"""Some scripts and emoji need these invisible characters."""

"""A finding, and the snapshot of an account in which findings are looked for."""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from unicodedata import category

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.thresholds import Severity, Thresholds, section
from api_exporter.netbird.facts.members import by_id
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import UP
from api_exporter.telemetry.freshness import Freshness

NAMED = 3
"""At most so many objects of a finding are named."""

LONGEST = 60
"""Letters of a name that are told."""


class Members(Struct):
    """The members of a group that the upstream lists as peers.

    Attributes:
        peers: how many there are.
        gone: those that are not connected.
        times: when each of these went, as far as that is known.
        expired: those whose login has.
    """

    peers: int = 0
    gone: list[Peer] = []
    times: list[float] = []
    expired: list[Peer] = []


class Finding(Struct, frozen=True, kw_only=True):
    """Something that needs attention.

    Attributes:
        object: the subject of the sentence, such as `Network depot`.
        message: the rest of the sentence.
        since: when it began, seconds since the epoch; None where nobody knows.
        until: when it ends, or something with it; None where it does not.
        alert: the alert that tells of the same; "" where the message says what to do.
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
        """Its section of the page at that address, "" where there is none."""
        return self.alert and section(runbooks, self.alert)


class Snapshot(Struct, frozen=True, kw_only=True, dict=True):
    """What there is to look at.

    Attributes:
        drop: when many peers went offline at once, or None.
        freshness: by resource, those that are asked for.
        chosen: names and ids of the groups that matter, as the operator has named
            them; empty for those of the thresholds.
        upstream_ends: when the upstream's certificate does; None where that is not
            known, or where there is none.
        own_ends: likewise, of the one that we show.
        now: seconds since the epoch.
    """

    inventory: Inventory
    thresholds: Thresholds
    now: float
    drop: float | None = None
    freshness: Mapping[str, Freshness] = {}
    chosen: tuple[str, ...] = ()
    upstream_ends: float | None = None
    own_ends: float | None = None

    @property
    def important(self) -> Sequence[str]:
        """Names and ids of the groups of which each peer matters."""
        return self.chosen or self.thresholds.groups.important

    @cached_property
    def joined(self) -> "Snapshot":
        """What is looked at where several resources are read together."""
        inventory = self.inventory.joined
        return (
            self if inventory is self.inventory else replace(self, inventory=inventory)
        )

    @cached_property
    def peers(self) -> Mapping[str, Peer]:
        """By id."""
        return by_id(self.inventory.peers or ())

    @cached_property
    def members(self) -> dict[str, Members]:
        """Of groups, by the groups' ids, of those that were looked at."""
        return {}

    @property
    def blind(self) -> bool:
        """Whether the peers cannot be read."""
        return UP in self.freshness and self.freshness[UP].up is False

    def caused(self, finding: "Finding") -> bool:
        """Whether a drop of the whole fleet is a greater cause: it began with that."""
        if self.drop is None or finding.since is None:
            return False
        return finding.since >= self.drop

    def finding(
        self,
        alert: str,
        object: str,  # noqa: A002 - the finding's own word
        message: str,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> Finding:
        """What an alert tells of, as severe as the alert. An end that has passed is a
        beginning.
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
        """Those of the peers that may be named, such as `: a, b, c and 2 more`."""
        ids = self._detailed_ids
        return listed(p.name or p.id for p in peers if ids is None or p.id in ids)

    @cached_property
    def _detailed_ids(self) -> Container[str] | None:
        return self.inventory.detailed_ids()


def listed(names: Iterable[str]) -> str:
    """Such as `: a, b, c and 2 more`, nothing where there are none."""
    every = list(names)
    first = ", ".join(map(plain, nsmallest(NAMED, every)))
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    return f": {first}{more}" if every else ""


def plain(name: str) -> str:
    """A name from elsewhere, for a line of text, of which it breaks nothing.

    What does not show, such as line ends and what turns the direction of writing,
    becomes a replacement character.
    """
    shown = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    if shown.isprintable():
        return shown
    return "".join("\N{REPLACEMENT CHARACTER}" if _breaks(c) else c for c in shown)


def _breaks(letter: str) -> bool:
    return category(letter) in _BREAKING and letter not in _JOINERS


_BREAKING = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
"""Scripts and pictures are written with them."""

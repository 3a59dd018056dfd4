"""A finding, and what is seen when findings are looked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from unicodedata import category

from msgspec import Struct

from api_exporter.attention.fleet import Fleet
from api_exporter.attention.thresholds import Severity, Thresholds, section
from api_exporter.exposition.tally import AT_ONCE, finish
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import UP
from api_exporter.telemetry.standing import Standing

NAMED = 3
"""At most so many objects of a finding are named."""

LONGEST = 60
"""Letters of a name that are told."""


class Finding(Struct, frozen=True, kw_only=True):
    """Something that needs attention.

    Attributes:
        object: what it is about, such as `Network depot`.
        words: a sentence.
        since: when it began, seconds since the epoch; None where nobody knows.
        until: when it ends, or something with it; None where it does not.
        alert: the alert that tells of the same; "" where the words say what to do.
    """

    severity: Severity
    object: str
    words: str
    since: float | None = None
    until: float | None = None
    alert: str = ""

    def runbook(self, runbooks: str) -> str:
        """Its section of the page at that address, "" where there is none."""
        return self.alert and section(runbooks, self.alert)


class Seen(Struct, frozen=True, kw_only=True, dict=True):
    """What there is to look at.

    Attributes:
        standings: by resource, those that are asked for.
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
    standings: Mapping[str, Standing] = {}
    chosen: tuple[str, ...] = ()
    upstream_ends: float | None = None
    own_ends: float | None = None

    @property
    def important(self) -> Sequence[str]:
        """Names and ids of the groups of which each peer matters."""
        return self.chosen or self.thresholds.groups.important

    @cached_property
    def peers(self) -> Mapping[str, Peer]:
        """By id."""
        finish(self.gather())
        found: Mapping[str, Peer] = self.__dict__["peers"]
        return found

    def gather(self) -> Iterator[None]:
        """Go through the peers in steps: without them it is one, when they are wanted.

        What it finds is put where the cached properties would put it.
        """
        if "peers" not in self.__dict__:
            peers, found = self.inventory.peers or (), dict[str, Peer]()
            fleet = Fleet(self.now)
            for start in range(0, len(peers), AT_ONCE):
                some = peers[start : start + AT_ONCE]
                found.update({peer.id: peer for peer in some})
                fleet.add(some)
                yield
            self.__dict__["fallen"] = fleet.dropped(self.thresholds)
            self.__dict__["peers"] = found

    @cached_property
    def members(self) -> dict[str, list[Peer]]:
        """The peers of groups by the groups' ids, of those that were looked at."""
        return {}

    @cached_property
    def fallen(self) -> float | None:
        """Since when a great part of the peers is gone; None if it is not."""
        finish(self.gather())
        found: float | None = self.__dict__["fallen"]
        return found

    @property
    def blind(self) -> bool:
        """Whether the peers cannot be read."""
        return UP in self.standings and self.standings[UP].up is False

    def caused(self, finding: "Finding") -> bool:
        """Whether a drop of the whole fleet is a greater cause: it began with that."""
        if self.fallen is None or finding.since is None:
            return False
        return finding.since >= self.fallen

    def finding(
        self,
        alert: str,
        object: str,  # noqa: A002 - the finding's own word
        words: str,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> Finding:
        """What an alert tells of, as severe as the alert."""
        return Finding(
            alert=alert,
            severity=self.thresholds.severities[alert],
            object=object,
            words=words,
            since=since,
            until=until,
        )

    def names(self, peers: Iterable[Peer]) -> str:
        """Those of the first peers that may be named, such as `: a, b and others`."""
        ids = self.inventory.detailed_ids
        told = [peer for peer in peers if ids is None or peer.id in ids]
        return listed(peer.name or peer.id for peer in told)


def listed(names: Iterable[str]) -> str:
    """Such as `: a, b, c and 2 more`, nothing where there are none."""
    every = list(names)
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    first = nsmallest(NAMED, every)
    return f": {', '.join(map(plain, first))}{more}" if every else ""


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


def counted(number: int, noun: str) -> str:
    """Such as `1 peer` or `1,234 peers`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

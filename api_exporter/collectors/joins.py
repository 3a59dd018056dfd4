"""Who stands behind what: the joins that several collectors make."""

from collections.abc import Iterable, Iterator, Mapping

from api_exporter.exposition.tally import AT_ONCE, finish
from api_exporter.exposition.text import Family, Labels, Metric
from api_exporter.netbird.records import Group, Peer

Members = Mapping[str, Iterable[str]]
"""The ids of a group's members, by the group's id."""


class Present:
    """Which peers there are.

    Attributes:
        existing: the ids of those that the upstream lists.
        connected: those of them that are connected.
        offline: the others.
        steps: all are whole when these have been gone through, by whomever.
    """

    def __init__(self, peers: tuple[Peer, ...]) -> None:
        self.existing: set[str] = set()
        self.connected: set[str] = set()
        self.offline: set[str] = set()
        self.steps = self._look(peers)

    def _look(self, peers: tuple[Peer, ...]) -> Iterator[None]:
        for start in range(0, len(peers), AT_ONCE):
            some = peers[start : start + AT_ONCE]
            self.existing.update([peer.id for peer in some])
            self.connected.update([peer.id for peer in some if peer.connected])
            self.offline.update([peer.id for peer in some if not peer.connected])
            yield

    def whole(self) -> "Present":
        """Itself, with the steps taken that are left."""
        finish(self.steps)
        return self


def members(groups: Iterable[Group], wanted: frozenset[str]) -> Members:
    """The members of the groups with these ids; others are not looked at."""
    return {group.id: ids(group) for group in groups if group.id in wanted}


def ids(group: Group) -> list[str]:
    """Of a group's members, as the upstream sends them."""
    return [member.id for member in group.peers or ()]


def routing_peers(
    peer: str, groups: Iterable[str] | None, members: Members
) -> frozenset[str]:
    """The ids behind a router: its peer and the members of its groups, each once."""
    found = {peer} if peer else set()
    for group in groups or ():
        found.update(members.get(group, ()))
    return frozenset(found)


def routing(
    present: Present,
    behind: Iterable[tuple[Labels, int, int]],
    existing: Metric,
    connected: Metric,
) -> Iterator[Family]:
    """How many peers route, and how many of them are connected: a family of each.

    Args:
        behind: labels and the two numbers, of each that is routed. It is gone through
            twice, and is made of `present`.
    """
    numbers = ((key, peers) for key, peers, _ in behind)
    yield Family(existing, numbers, at_once=1, steps=present.steps)
    numbers = ((key, there) for key, _, there in behind)
    yield Family(connected, numbers, at_once=1, steps=present.steps)

"""Who stands behind what: the joins that several collectors make."""

from collections.abc import Iterable, Iterator, Mapping

from api_exporter.collectors.once import OnceInSteps
from api_exporter.exposition.each import Identified
from api_exporter.exposition.tally import AT_ONCE, finish
from api_exporter.exposition.text import Family, Labels, Metric
from api_exporter.netbird.facts.routing import RoutingPeers
from api_exporter.netbird.records import Group, Peer


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


def ids(group: Group) -> list[str]:
    """Of a group's members, as the upstream sends them."""
    return [member.id for member in group.peers or ()]


def routing(
    keyed: Iterable[tuple[Labels, Identified]],
    found: OnceInSteps[Mapping[str, RoutingPeers]],
    existing: Metric,
    connected: Metric,
) -> Iterator[Family]:
    """How many peers route, and how many of them are connected: a family of each.

    Args:
        keyed: labels of each that is routed. It is gone through twice.
    """
    numbers = ((key, found.whole()[one.id].peers) for key, one in keyed)
    yield Family(existing, numbers, steps=found.steps)
    numbers = ((key, found.whole()[one.id].connected) for key, one in keyed)
    yield Family(connected, numbers, steps=found.steps)

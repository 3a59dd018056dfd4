"""Who stands behind what: the joins that several collectors make."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from api_exporter.collectors.once import OnceInSteps
from api_exporter.exposition.each import Identified
from api_exporter.exposition.tally import AT_ONCE
from api_exporter.exposition.text import Family, Labels, Metric
from api_exporter.netbird.facts.routing import RoutingPeers
from api_exporter.netbird.records import Group, Peer


class Present:
    """Which peers there are.

    Attributes:
        connected: the ids of those that are connected.
        offline: the others.
        steps: both are whole when these have been gone through, by whomever.
    """

    def __init__(self, peers: tuple[Peer, ...]) -> None:
        self.connected: set[str] = set()
        self.offline: set[str] = set()
        self.steps = self._look(peers)

    def _look(self, peers: tuple[Peer, ...]) -> Iterator[None]:
        for start in range(0, len(peers), AT_ONCE):
            some = peers[start : start + AT_ONCE]
            self.connected.update([peer.id for peer in some if peer.connected])
            self.offline.update([peer.id for peer in some if not peer.connected])
            yield


E = TypeVar("E", bound=Identified)


def distinct(elements: Iterable[E] | None) -> Iterable[E]:
    """What a list inside of a record holds: of two with one id the last counts."""
    return {
        element.id or place: element for place, element in enumerate(elements or ())
    }.values()


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

"""Families of routing peers, which networks and routes have alike."""

from collections.abc import Iterable, Iterator, Mapping

from api_exporter.collectors.once import OnceInSteps
from api_exporter.exposition.each import Identified
from api_exporter.exposition.text import Family, Labels, Metric
from api_exporter.netbird.facts.routing import RoutingPeers


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

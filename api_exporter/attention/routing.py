"""Networks and routes with nobody, or one peer, left to route for them."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from api_exporter.attention.finding import Finding, Seen, counted, listed, plain
from api_exporter.collectors import joins
from api_exporter.collectors.networks import network_of, routers_of
from api_exporter.collectors.routes import destination
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.records import NetworkResource, Route

Way = tuple[str, tuple[str, ...] | None]
"""A peer, or groups of peers, that route."""


class Behind(Struct, frozen=True):
    """The peers that route for something.

    Attributes:
        since: when the last of those that are gone went.
    """

    peers: int
    connected: int
    since: float | None


class Routing:
    """Who routes; many things share their ways, so each is looked at once."""

    def __init__(self, seen: Seen, ways: Iterable[Way]) -> None:
        self._peers = seen.peers
        wanted = frozenset(group for _, groups in ways for group in groups or ())
        self._members = joins.members(seen.inventory.groups or (), wanted)
        self._found: dict[frozenset[Way], Behind] = {}

    def behind(self, ways: Iterable[Way]) -> Behind:
        """The peers of all these ways, each once."""
        key = frozenset(ways)
        if key not in self._found:
            self._found[key] = self._look(key)
        return self._found[key]

    def _look(self, ways: frozenset[Way]) -> Behind:
        ids = frozenset().union(
            *(joins.routing_peers(peer, groups, self._members) for peer, groups in ways)
        )
        peers = [self._peers[id_] for id_ in ids if id_ in self._peers]
        gone = [timestamp(peer.last_seen) for peer in peers if not peer.connected]
        return Behind(
            len(peers), len(peers) - len(gone), max(filter(None, gone), default=None)
        )


def networks(seen: Seen) -> Iterator[Finding]:
    """Networks that cannot be reached, and their resources, or hang on one peer."""
    inventory = seen.inventory
    by_id = {router.id: router for router in inventory.network_routers or ()}
    routing = Routing(seen, ((r.peer, r.peer_groups) for r in by_id.values()))
    lost: dict[str, list[NetworkResource]] = {}
    home = network_of(inventory.networks or ())
    for resource in inventory.network_resources or ():
        if resource.enabled and resource.id in home:
            lost.setdefault(home[resource.id], []).append(resource)
    enabled = {r.id for r in inventory.network_resources or () if r.enabled}
    for network in inventory.networks or ():
        behind = routing.behind(
            (router.peer, router.peer_groups)
            for router in routers_of(network, by_id)
            if router.enabled
        )
        named = f"Network {plain(network.name or network.id)}"
        if behind.connected == 1 and behind.peers > 1:
            yield seen.finding(
                "NetBirdNetworkRedundancyLost",
                named,
                _last(behind),
                since=behind.since,
            )
        if behind.connected:
            continue
        if not enabled.isdisjoint(network.resources or ()):
            yield seen.finding(
                "NetBirdNetworkUnreachable",
                named,
                f"It cannot be reached: {_none(behind)}.",
                since=behind.since,
            )
        if resources := lost.get(network.id):
            number = counted(len(resources), "resource")
            names = listed(r.name or r.address or r.id for r in resources)
            yield seen.finding(
                "NetBirdResourceUnreachable",
                named,
                f"Nobody can reach {number} of it{names}.",
                since=behind.since,
            )


def routes(seen: Seen) -> Iterator[Finding]:
    """Routes with one identifier and one network are each other's substitutes."""
    enabled = [route for route in seen.inventory.routes or () if route.enabled]
    routing = Routing(seen, ((r.peer, r.peer_groups) for r in enabled))
    alike: dict[tuple[str, str], list[Route]] = {}
    for route in enabled:
        alike.setdefault((route.network_id, destination(route)), []).append(route)
    for (name, network), group in alike.items():
        each = [routing.behind([(r.peer, r.peer_groups)]) for r in group]
        behind = Behind(
            sum(one.peers for one in each),
            sum(one.connected for one in each),
            max(filter(None, (one.since for one in each)), default=None),
        )
        named = f"Route {plain(name)} to {plain(network)}"
        if behind.connected == 0:
            yield seen.finding(
                "NetBirdRouteUnreachable",
                named,
                f"It leads nowhere: {_none(behind)}.",
                since=behind.since,
            )
        elif behind.connected == 1 and behind.peers > 1:
            yield seen.finding(
                "NetBirdRouteRedundancyLost", named, _last(behind), since=behind.since
            )


def _none(behind: Behind) -> str:
    if not behind.peers:
        return "it has no routing peer"
    if behind.peers == 1:
        return "its only routing peer is not connected"
    return f"none of its {behind.peers:,} routing peers is connected"


def _last(behind: Behind) -> str:
    return f"It hangs on the last of its {behind.peers:,} routing peers."

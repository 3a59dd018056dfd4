"""Findings about networks and routes appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.ports import UpstreamError
from api_exporter.subjects.networks import Network, NetworkResource, NetworkRouter
from api_exporter.subjects.routes import Route
from api_exporter.subjects.watch import unknown_resources
from tests.attention.looking import HOUR, NOW, FindingsTestCase, group, peer, seen
from tests.inventories import changed, inventory_of

REFUSED = UpstreamError("auth", "401")
FAILING = {
    "peers": ResourceState(
        interval=30, error=REFUSED, failing_since=NOW - 60, ended_at=NOW
    )
}


PRINTER = (
    "NetBirdResourceUnreachable: Network resource printer is unreachable: its network"
    " has no connected routing peer."
)


class RoutingTests(FindingsTestCase):
    def depot(self, *connected: bool) -> Inventory:
        """Return a network with a resource and some routing peers."""
        peers = tuple(
            peer(f"r{number}", connected=there, since=-HOUR * (number + 1))
            for number, there in enumerate(connected)
        )
        return inventory_of(
            peers=peers,
            groups=(group("gates", *(p.id for p in peers)),),
            networks=(
                Network(id="n", name="depot", routers=("x", "off"), resources=("a",)),
            ),
            network_routers=(
                NetworkRouter(id="x", enabled=True, peer_groups=("g-gates",)),
                NetworkRouter(id="off", peer="elsewhere"),
            ),
            network_resources=(
                NetworkResource(id="a", name="printer", enabled=True),
                NetworkResource(id="b", name="of no network", enabled=True),
            ),
        )

    def test_network(self) -> None:
        """A network is unreachable since its last routing peer went offline."""
        for states, words, time in (
            (
                (False, False),
                "none of its 2 routing peers is connected",
                " (since -3600)",
            ),
            ((False,), "its only routing peer is offline", " (since -3600)"),
            ((), "it has no enabled routing peer (1 disabled)", ""),
        ):
            self.tells(
                self.depot(*states),
                f"NetBirdNetworkUnreachable: Network depot cannot be reached: {words}."
                f"{time}",
                f"{PRINTER}{time}",
            )
        # Without an enabled resource, nothing is unreachable, or may soon be.
        for states in ((False,), (True, False)):
            self.tells(changed(self.depot(*states), network_resources=()))
        self.tells(self.depot(True, True))
        self.tells(self.depot(True))

    def test_last(self) -> None:
        """Networks with one routing peer left of several have no redundancy."""
        shed = Network(id="m", name="shed", routers=("y",), resources=("b",))
        for offline in (1, 2):
            depot = self.depot(True, *([False] * offline))
            routers = depot.records["network_routers"]
            words = (
                f"has only 1 of {offline + 1} routing peers connected (no redundancy)."
                " (since -7200)"
            )
            self.tells(
                changed(
                    depot,
                    networks=(*depot.records["networks"], shed),
                    network_routers=(*routers, replace(routers[0], id="y")),
                ),
                f"NetBirdNetworkRedundancyLost: Network depot {words}",
                f"NetBirdNetworkRedundancyLost: Network shed {words}",
            )

    def test_routes(self) -> None:
        """Routes with one identifier and one network replace each other."""
        office = Route(id="", network_id="office", network="10.0.0.0/8", enabled=True)
        for connected, alert, words in (
            (
                (False, False),
                "Unreachable",
                "leads to no connected peer: none of its 2 routing peers is connected."
                " (since -3600)",
            ),
            (
                (True, False),
                "RedundancyLost",
                "has only 1 of 2 routing peers connected (no redundancy). (since"
                " -7200)",
            ),
            ((True, True), "", ""),
            ((True,), "", ""),
        ):
            routes = [
                replace(office, id=f"{number}", peer=f"r{number}")
                for number in range(len(connected))
            ]
            off = Route(id="off", network_id="off", peer="nobody")
            depot = self.depot(*connected)
            line = f"NetBirdRoute{alert}: Route office to 10.0.0.0/8 {words}"
            self.tells(
                changed(depot, networks=None, routes=(*routes, off)), alert and line
            )

    def test_route_peers(self) -> None:
        """A peer of several routes that replace each other counts once."""
        office = Route(id="a", network_id="office", network="10.0.0.0/8", enabled=True)
        routes = (
            replace(office, peer="r0"),
            replace(office, id="b", peer_groups=("g-gates",)),
        )
        beginning = "Route office to 10.0.0.0/8"
        for connected, words in (
            (
                (False, False),
                f"NetBirdRouteUnreachable: {beginning} leads to no connected peer: none"
                " of its 2 routing peers is connected. (since -3600)",
            ),
            (
                (True, False),
                f"NetBirdRouteRedundancyLost: {beginning} has only 1 of 2 routing peers"
                " connected (no redundancy). (since -7200)",
            ),
        ):
            depot = changed(self.depot(*connected), networks=None, routes=routes)
            self.tells(depot, words)

    def test_without_peers(self) -> None:
        """A network or a route without any routing peer is unreachable, too."""
        networks = (Network(id="n", name="depot", resources=("a",)),)
        office = Route(id="r", network_id="office", network="10.0.0.0/8", enabled=True)
        self.tells(
            changed(self.depot(), networks=networks, routes=(office,)),
            "NetBirdNetworkUnreachable: Network depot cannot be reached: it has no"
            " routing peer.",
            "NetBirdRouteUnreachable: Route office to 10.0.0.0/8 leads to no connected"
            " peer: it has no routing peer.",
            PRINTER,
        )

    def test_unreadable(self) -> None:
        """While the peers cannot be read, that is the only finding about peers."""
        route = Route(id="r", network_id="r", enabled=True, peer="r0")
        depot = changed(self.depot(False, False), routes=(route,))
        states = {**FAILING, "users": ResourceState(interval=60)}
        unreadable = "ApiExporterUpstreamFailing: The peers cannot be read from the"
        self.tells(
            seen(depot, states=states),
            f"{unreadable} NetBird API: their metrics are old. (since -60)",
        )
        withdrawn = seen(changed(depot, peers=None), states=states)
        self.tells(
            withdrawn,
            f"{unreadable} NetBird API: their metrics are missing. (since -60)",
        )
        self.assertEqual(("peers", "users"), unknown_resources(withdrawn))

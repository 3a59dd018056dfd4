"""The routes collector."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Member, Peer, Route
from tests.collectors.samples import Samples, scrape

EXIT = '{route_id="r1",network_id="exit"}'
KNOWN = Inventory(
    routes=(Route(id="r1", network_id="exit", enabled=True, peer="up"),),
    groups=(Group(id="pair", peers=(Member(id="up"), Member(id="down"))),),
    peers=(Peer(id="up", connected=True), Peer(id="down")),
)


def of(*routes: Route) -> Samples:
    return scrape("routes", replace(KNOWN, routes=routes))


class RoutesTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown or missing routes have no series."""
        self.assertEqual({}, scrape("routes", replace(KNOWN, routes=None)))
        self.assertEqual({}, of())

    def test_counts(self) -> None:
        """Routes are counted by type and state, in combinations that occur."""
        self.assertEqual(
            [
                '{network_type="",enabled="false",masquerade="false"} 1',
                '{network_type="Domain",enabled="true",masquerade="true"} 2',
                '{network_type="Invalid",enabled="false",masquerade="true"} 1',
            ],
            of(
                Route(id="1", network_type="Domain", enabled=True, masquerade=True),
                Route(id="2", network_type="Domain", enabled=True, masquerade=True),
                Route(id="3", network_type="Invalid", masquerade=True),
                Route(id="4"),
            )["routes"],
        )

    def test_info(self) -> None:
        """The network label is the address, or the sorted domains of a domain route."""
        for kind, domains, network in (
            ("IPv4", None, "192.0.2.0/32"),
            ("IPv6", ("x.example",), "192.0.2.0/32"),
            ("domain", ("x.example",), "192.0.2.0/32"),
            ("Domain", ("b.x", "a.x", "ü.x", "Z.x"), "Z.x,a.x,b.x,ü.x"),
            ("Domain", None, ""),
        ):
            route = Route(
                id="r1",
                network_id="exit",
                network_type=kind,
                network="192.0.2.0/32",
                domains=domains,
            )
            self.assertEqual(
                [
                    (
                        f'{{route_id="r1",network_id="exit",network_type="{kind}",'
                        f'network="{network}"}} 1'
                    )
                ],
                of(route)["route_info"],
            )

    def test_enabled(self) -> None:
        """A route has a state, under its id and that of its network."""
        for enabled in (True, False):
            route = Route(id="r1", network_id="exit", enabled=enabled)
            self.assertEqual([f"{EXIT} {int(enabled)}"], of(route)["route_enabled"])

    def test_routing_peers(self) -> None:
        """Existing peers behind enabled routes count, each once."""
        for peer, groups, behind, connected in (
            ("up", None, 1, 1),
            ("down", None, 1, 0),
            ("deleted", None, 0, 0),
            ("", ("pair",), 2, 1),
            ("up", ("pair", "pair"), 2, 1),
            ("", ("deleted",), 0, 0),
            ("", None, 0, 0),
        ):
            route = Route(
                id="r1", network_id="exit", enabled=True, peer=peer, peer_groups=groups
            )
            families = of(route)
            self.assertEqual([f"{EXIT} {behind}"], families["route_routing_peers"])
            self.assertEqual(
                [f"{EXIT} {connected}"], families["route_routing_peers_connected"]
            )

    def test_disabled(self) -> None:
        """A disabled route has no series of routing peers, not even 0."""
        self.assertEqual(
            {"routes", "route_info", "route_enabled"}, set(of(Route(id="1", peer="up")))
        )

    def test_sides_unknown(self) -> None:
        """Only the routing peers are missing without groups or peers."""
        for resource in ("groups", "peers"):
            left = scrape("routes", KNOWN.with_(resource, None))
            self.assertEqual(
                {"route_routing_peers", "route_routing_peers_connected"},
                set(scrape("routes", KNOWN)) - set(left),
            )

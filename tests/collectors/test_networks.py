"""The networks collector, a claim of the contract at a time."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.networks import measure
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Group,
    Member,
    Network,
    NetworkResource,
    NetworkRouter,
    Peer,
)
from tests.collectors.samples import told

HQ = '{network_id="n1",network="hq"}'
KNOWN = Inventory(
    networks=(
        Network(
            id="n1",
            name="hq",
            routers=("by-peer", "by-group", "gone"),
            resources=("on", "off", "gone", "on"),
            policies=("any", "other"),
        ),
    ),
    network_routers=(
        NetworkRouter(id="by-peer", enabled=True, peer="up"),
        NetworkRouter(id="by-group", enabled=True, peer_groups=("pair",)),
        NetworkRouter(id="adrift", enabled=True, peer="up"),
    ),
    network_resources=(
        NetworkResource(id="on", enabled=True),
        NetworkResource(id="off"),
        NetworkResource(id="adrift", enabled=True),
    ),
    groups=(Group(id="pair", peers=(Member(id="up"), Member(id="down"))),),
    peers=(Peer(id="up", connected=True), Peer(id="down")),
)
ROUTING = {"network_routing_peers", "network_routing_peers_connected"}


class NetworksTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Nothing is said of networks while they are unknown."""
        self.assertEqual({}, told(measure, replace(KNOWN, networks=None)))

    def test_one_network(self) -> None:
        """A network has its resources, policies, routers and the peers behind them."""
        self.assertEqual(
            {
                "networks": ["1"],
                "network_info": [f"{HQ} 1"],
                "network_resources": [
                    '{network_id="n1",network="hq",enabled="true"} 1',
                    '{network_id="n1",network="hq",enabled="false"} 1',
                ],
                "network_policies": [f"{HQ} 2"],
                "network_routing_peers": [f"{HQ} 2"],
                "network_routing_peers_connected": [f"{HQ} 1"],
                "network_router_enabled": [
                    '{network_id="n1",router_id="by-peer"} 1',
                    '{network_id="n1",router_id="by-group"} 1',
                ],
            },
            told(measure, KNOWN),
        )

    def test_nothing_in_it(self) -> None:
        """Null lists count nothing, and both kinds of resources are told as 0."""
        for lists in (None, ()):
            empty = Network(
                id="n1", name="hq", routers=lists, resources=lists, policies=lists
            )
            families = told(measure, replace(KNOWN, networks=(empty,)))
            self.assertEqual(
                {
                    "networks": ["1"],
                    "network_info": [f"{HQ} 1"],
                    "network_resources": [
                        '{network_id="n1",network="hq",enabled="true"} 0',
                        '{network_id="n1",network="hq",enabled="false"} 0',
                    ],
                    "network_policies": [f"{HQ} 0"],
                    "network_routing_peers": [f"{HQ} 0"],
                    "network_routing_peers_connected": [f"{HQ} 0"],
                },
                families,
            )
        self.assertEqual(
            {"networks": ["0"]}, told(measure, replace(KNOWN, networks=()))
        )

    def test_routing_peers(self) -> None:
        """Existing peers behind enabled routers count, each once."""
        for routers, behind, connected in (
            ([NetworkRouter(id="r", enabled=True, peer="up")], 1, 1),
            ([NetworkRouter(id="r", enabled=True, peer="down")], 1, 0),
            ([NetworkRouter(id="r", enabled=True, peer="deleted")], 0, 0),
            ([NetworkRouter(id="r", enabled=False, peer="up")], 0, 0),
            ([NetworkRouter(id="r", enabled=True, peer_groups=("pair",))], 2, 1),
            ([NetworkRouter(id="r", enabled=True, peer_groups=("deleted",))], 0, 0),
            ([NetworkRouter(id="r", enabled=True)], 0, 0),
            (
                [
                    NetworkRouter(id="r", enabled=True, peer="up"),
                    NetworkRouter(id="s", enabled=True, peer_groups=("pair", "pair")),
                ],
                2,
                1,
            ),
            (
                [
                    NetworkRouter(id="r", enabled=False, peer="up"),
                    NetworkRouter(id="s", enabled=True, peer="down"),
                ],
                1,
                0,
            ),
        ):
            families = told(
                measure,
                replace(
                    KNOWN,
                    networks=(Network(id="n1", name="hq", routers=("r", "s")),),
                    network_routers=tuple(routers),
                ),
            )
            self.assertEqual([f"{HQ} {behind}"], families["network_routing_peers"])
            self.assertEqual(
                [f"{HQ} {connected}"], families["network_routing_peers_connected"]
            )

    def test_routers(self) -> None:
        """A router belongs to each network that lists it; listed twice it is one."""
        networks = (
            Network(id="n1", routers=("r", "r", "deleted")),
            Network(id="n2", routers=("r",)),
        )
        for enabled in (True, False):
            router = NetworkRouter(id="r", enabled=enabled)
            families = told(
                measure, Inventory(networks=networks, network_routers=(router,))
            )
            self.assertEqual(
                [
                    f'{{network_id="n1",router_id="r"}} {int(enabled)}',
                    f'{{network_id="n2",router_id="r"}} {int(enabled)}',
                ],
                families["network_router_enabled"],
            )

    def test_sides_unknown(self) -> None:
        """A join is left out while one of its sides is unknown; all others stay."""
        everything = set(told(measure, KNOWN))
        for resource, missing in {
            "network_resources": {"network_resources"},
            "network_routers": ROUTING | {"network_router_enabled"},
            "groups": ROUTING,
            "peers": ROUTING,
        }.items():
            left = set(told(measure, KNOWN.with_(resource, None)))
            self.assertEqual(missing, everything - left, resource)

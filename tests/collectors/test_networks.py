"""The networks collector."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Group,
    GroupId,
    Member,
    Network,
    NetworkResource,
    NetworkRouter,
    Peer,
)
from tests.collectors.samples import scrape

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
        NetworkRouter(id="by-peer", enabled=True, peer="up", metric=100),
        NetworkRouter(id="by-group", enabled=True, peer_groups=("pair",)),
        NetworkRouter(id="adrift", enabled=True, peer="up"),
    ),
    network_resources=(
        NetworkResource(
            id="on",
            name="lan",
            type="subnet",
            address="10.0.0.0/8",
            enabled=True,
            groups=(GroupId(id="a"), GroupId(id="a")),
        ),
        NetworkResource(id="off", name="lan"),
        NetworkResource(id="adrift", enabled=True),
    ),
    groups=(Group(id="pair", peers=(Member(id="up"), Member(id="down"))),),
    peers=(Peer(id="up", connected=True), Peer(id="down")),
)
ROUTING = {
    "network_routing_peers",
    "network_routing_peers_connected",
    "network_resource_routing_peers_connected",
}
EACH_RESOURCE = {
    "network_resource_info",
    "network_resource_enabled",
    "network_resource_routing_peers_connected",
    "network_resource_groups",
}


def resource(id_: str, name: str = "lan") -> str:
    return f'{{network_resource_id="{id_}",network_resource="{name}"}}'


class NetworksTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Without networks, resources have only their own properties."""
        self.assertEqual({}, scrape("networks", Inventory()))
        self.assertEqual(
            {"network_resource_enabled", "network_resource_groups"},
            set(scrape("networks", replace(KNOWN, networks=None))),
        )

    def test_one_network(self) -> None:
        """A network has its resources, policies, routers and the peers behind them."""
        families = scrape("networks", KNOWN)
        for name in EACH_RESOURCE:
            families.pop(name)
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
                "network_router_metric": [
                    '{network_id="n1",router_id="by-peer"} 100',
                    '{network_id="n1",router_id="by-group"} 0',
                ],
            },
            families,
        )

    def test_each_resource(self) -> None:
        """A resource has its properties, its groups as sent, and its routing peers."""
        families = scrape("networks", KNOWN)
        on, off, adrift = resource("on"), resource("off"), resource("adrift", "")
        empty = 'resource_type="",address=""} 1'
        self.assertEqual(
            {
                "network_resource_info": [
                    f'{on[:-1]},network_id="n1",resource_type="subnet",'
                    'address="10.0.0.0/8"} 1',
                    f'{off[:-1]},network_id="n1",{empty}',
                    f'{adrift[:-1]},network_id="",{empty}',
                ],
                "network_resource_enabled": [f"{on} 1", f"{off} 0", f"{adrift} 1"],
                "network_resource_routing_peers_connected": [f"{on} 1", f"{off} 1"],
                "network_resource_groups": [f"{on} 2", f"{off} 0", f"{adrift} 0"],
            },
            {name: families[name] for name in EACH_RESOURCE},
        )

    def test_resource_of_two_networks(self) -> None:
        """The last network that lists a resource is its network."""
        behind = Network(id="n2", resources=("on",), routers=("by-peer",))
        nowhere = Network(id="n3", resources=("on",))
        for networks, id_, connected in (
            ((behind, nowhere), "n3", 0),
            ((nowhere, behind), "n2", 1),
        ):
            families = scrape("networks", replace(KNOWN, networks=networks))
            info = families["network_resource_info"][0]
            self.assertIn(f'network_id="{id_}"', info)
            self.assertEqual(
                [f"{resource('on')} {connected}"],
                families["network_resource_routing_peers_connected"],
            )

    def test_nothing_in_it(self) -> None:
        """Null lists count 0, for enabled and for disabled resources."""
        for lists in (None, ()):
            empty = Network(
                id="n1", name="hq", routers=lists, resources=lists, policies=lists
            )
            families = scrape(
                "networks", replace(KNOWN, networks=(empty,), network_resources=())
            )
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
            {"networks": ["0"]},
            scrape("networks", replace(KNOWN, networks=(), network_resources=())),
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
            families = scrape(
                "networks",
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
        """A router belongs to each network that lists it, once."""
        networks = (
            Network(id="n1", routers=("r", "r", "deleted")),
            Network(id="n2", routers=("r",)),
        )
        for enabled in (True, False):
            router = NetworkRouter(id="r", enabled=enabled)
            families = scrape(
                "networks", Inventory(networks=networks, network_routers=(router,))
            )
            self.assertEqual(
                [
                    f'{{network_id="n1",router_id="r"}} {int(enabled)}',
                    f'{{network_id="n2",router_id="r"}} {int(enabled)}',
                ],
                families["network_router_enabled"],
            )

    def test_sides_unknown(self) -> None:
        """A join is left out while one of its lists is unknown; all others stay."""
        everything = set(scrape("networks", KNOWN))
        for resource, missing in {
            "network_resources": {"network_resources"} | EACH_RESOURCE,
            "network_routers": ROUTING
            | {"network_router_enabled", "network_router_metric"},
            "groups": ROUTING,
            "peers": ROUTING,
        }.items():
            left = set(scrape("networks", KNOWN.with_(resource, None)))
            self.assertEqual(missing, everything - left, resource)

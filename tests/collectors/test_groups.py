"""The groups collector."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Member, Peer, TypedId
from tests.collectors.samples import Samples, scrape

DEV = '{group_id="g1",group="dev"}'


def of(*groups: Group, peers: tuple[Peer, ...] | None = ()) -> Samples:
    return scrape("groups", Inventory(groups=groups, peers=peers))


class GroupsTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown groups have no families."""
        self.assertEqual({}, scrape("groups", Inventory(peers=())))

    def test_by_issuer(self) -> None:
        """Groups are counted by origin, as it is sent; an empty one is "unknown"."""
        issuers = ("api", "api", "jwt", "", "unknown", "carrier-pigeon")
        self.assertEqual(
            [
                '{issued="api"} 2',
                '{issued="carrier-pigeon"} 1',
                '{issued="jwt"} 1',
                '{issued="unknown"} 2',
            ],
            of(*(Group(id=str(n), issued=i) for n, i in enumerate(issuers)))["groups"],
        )

    def test_one_group(self) -> None:
        """Sizes are published as NetBird sends them, resources by type too."""
        group = Group(
            id="g1",
            name="dev",
            issued="jwt",
            peers_count=7,
            resources_count=9,
            resources=(
                TypedId(id="r1", type="host"),
                TypedId(id="r2", type="subnet"),
                TypedId(id="r3", type="host"),
                TypedId(id="r4", type="wormhole"),
            ),
        )
        self.assertEqual(
            {
                "groups": ['{issued="jwt"} 1'],
                "group_info": ['{group_id="g1",group="dev",issued="jwt"} 1'],
                "group_peers": [f"{DEV} 7"],
                "group_peers_connected": [f"{DEV} 0"],
                "group_peers_offline": [f"{DEV} 0"],
                "group_resources": [f"{DEV} 9"],
                "group_resources_by_type": [
                    '{group_id="g1",group="dev",resource_type="host"} 2',
                    '{group_id="g1",group="dev",resource_type="subnet"} 1',
                    '{group_id="g1",group="dev",resource_type="wormhole"} 1',
                ],
            },
            of(group),
        )

    def test_empty_group(self) -> None:
        """Null lists are empty, and types that do not occur have no series."""
        families = of(Group(id="g1", name="dev", peers=None, resources=None))
        self.assertEqual(
            ['{group_id="g1",group="dev",issued=""} 1'], families["group_info"]
        )
        self.assertEqual([f"{DEV} 0"], families["group_peers_connected"])
        self.assertNotIn("group_resources_by_type", families)

    def test_connected_members(self) -> None:
        """Listed members count once, as connected or as offline."""
        up, down = Peer(id="up", connected=True), Peer(id="down")
        for members, connected, offline in (
            (("up", "down"), 1, 1),
            (("up", "up", "down", "down"), 1, 1),
            (("by-hand", "deleted"), 0, 0),
            (("",), 0, 0),
            ((), 0, 0),
        ):
            group = Group(
                id="g1", name="dev", peers=tuple(Member(id=id_) for id_ in members)
            )
            families = of(group, peers=(up, down))
            for state, count in (("connected", connected), ("offline", offline)):
                self.assertEqual(
                    [f"{DEV} {count}"], families[f"group_peers_{state}"], members
                )

    def test_peers_unknown(self) -> None:
        """Only the states of members are missing while the peers are unknown."""
        group = Group(id="g1", peers=(Member(id="up"),))
        self.assertEqual(
            {"group_peers_connected", "group_peers_offline"},
            set(of(group)) - set(of(group, peers=None)),
        )

"""Which records joins use, list by list."""

from collections.abc import Iterator

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.agent_records import AgentBudgetRule, AgentProvider
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.joins import SETTLED, Reading
from api_exporter.netbird.records import (
    Group,
    Member,
    Network,
    NetworkResource,
    NetworkRouter,
    Peer,
    Route,
    User,
)


def group(id_: str, *peers: str) -> Group:
    return Group(id=id_, peers=tuple(Member(id=peer) for peer in peers))


def route(id_: str, *groups: str, peer: str = "") -> Route:
    return Route(id=id_, peer=peer, peer_groups=groups)


class Lists:
    """An inventory whose lists are read one after the other."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self._clock = 0

    def read(self, **lists: tuple[object, ...] | None) -> "Lists":
        for name, records in lists.items():
            before = self.inventory
            self._clock += 2
            after, reading = before.with_(name, records), None
            if records is not None:
                reading = Reading(self._clock, self._clock + 1)
            self.inventory = after.settle(before, name, reading)
        return self

    def reread(self, name: str) -> "Lists":
        """The same body again."""
        self._clock += 2
        reading = Reading(self._clock, self._clock + 1)
        self.inventory = self.inventory.settle(self.inventory, name, reading)
        return self

    def used(self, name: str) -> list[str]:
        """The ids of the records that joins use."""
        return sorted(record.id for record in getattr(self.inventory.joined, name))

    @property
    def due(self) -> set[str]:
        return set(self.inventory.joins.due)


PEERS = (Peer(id="p"), Peer(id="q"))
GROUPS = (group("g", "p"), group("h", "q"))
ROUTES = (route("r", "g"),)


class NewTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.lists = Lists().read(peers=PEERS, groups=GROUPS, routes=ROUTES)

    def test_settled(self) -> None:
        """Joins use what is listed where all ids are there."""
        self.assertIs(self.lists.inventory, self.lists.inventory.joined)
        self.assertEqual(set(), self.lists.due)

    def test_new(self) -> None:
        """A new record is left out until what it names was read after it."""
        self.lists.read(routes=(*ROUTES, route("new", "later"), route("n", "h")))
        self.assertEqual(["r"], self.lists.used("routes"))
        self.assertEqual({"groups", "peers"}, self.lists.due)
        self.lists.reread("peers")
        self.lists.read(groups=(*GROUPS, group("later", "p")))
        self.assertEqual(["n", "r"], self.lists.used("routes"))
        self.assertEqual(["g", "h"], self.lists.used("groups"))
        self.lists.reread("peers")
        self.assertEqual(["n", "new", "r"], self.lists.used("routes"))
        self.assertEqual(set(), self.lists.due)

    def test_changed(self) -> None:
        """A changed record keeps its previous version, however often it changes."""
        for groups in (("h",), ("g", "h")):
            self.lists.read(routes=(route("r", *groups),))
            self.assertEqual(ROUTES, self.lists.inventory.joined.routes)
        self.lists.reread("groups").reread("peers")
        self.assertEqual((route("r", "g", "h"),), self.lists.inventory.joined.routes)

    def test_overlap(self) -> None:
        """A reading that had begun before says nothing of what came then."""
        before = self.lists.inventory
        after = before.with_("routes", (*ROUTES, route("new", "g")))
        after = after.settle(before, "routes", Reading(50, 60))
        for name, began in (("groups", 61), ("peers", 55)):
            after = after.settle(after, name, Reading(began, began + 10))
        self.assertEqual(ROUTES, after.joined.routes)
        self.assertEqual({"peers"}, set(after.joins.due))

    def test_other_lists(self) -> None:
        """A list that no join names an id of changes nothing."""
        self.lists.read(setup_keys=())
        self.assertEqual(set(), self.lists.due)

    def test_withdrawn(self) -> None:
        """Nothing waits for a list that is withdrawn, and of it nothing is kept."""
        self.lists.read(routes=(*ROUTES, route("new", "g")), groups=None)
        self.assertEqual({"peers"}, self.lists.due)
        self.lists.read(routes=None, peers=None)
        self.assertEqual(set(), self.lists.due)
        self.assertEqual({}, self.lists.inventory.joins.held)
        self.assertEqual({}, self.lists.inventory.joins.removed)

    def test_gone_again(self) -> None:
        """A new record that goes was never there."""
        self.lists.read(routes=(*ROUTES, route("new", "g")))
        self.lists.read(routes=ROUTES)
        self.assertEqual(SETTLED.held, self.lists.inventory.joins.held)
        self.assertIs(self.lists.inventory, self.lists.inventory.joined)


class FirstTests(SynchronousTestCase):
    def test_missing(self) -> None:
        """Of a first reading only records wait whose ids are not there."""
        lists = Lists().read(peers=PEERS, groups=(*GROUPS, group("odd", "x")))
        self.assertEqual(["g", "h"], lists.used("groups"))
        self.assertEqual({"peers"}, lists.due)
        lists.reread("peers")
        self.assertEqual(["g", "h"], lists.used("groups"))
        self.assertEqual({"groups"}, lists.due, "both may be deleted by now")
        lists.reread("groups")
        self.assertEqual(["g", "h", "odd"], lists.used("groups"))
        self.assertEqual(set(), lists.due)

    def test_stays(self) -> None:
        """What is missing once stays so, whoever names it, until it is there."""
        lists = Lists().read(peers=PEERS, groups=(group("odd", "x"),))
        lists.reread("peers").reread("groups").reread("peers").reread("peers")
        self.assertEqual(["odd"], lists.used("groups"))
        self.assertEqual(set(), lists.due)

    def test_missing_meanwhile(self) -> None:
        """The peers are read much more often: the groups need only one reading."""
        lists = Lists().read(peers=PEERS, groups=(group("odd", "x"),))
        lists.reread("peers").reread("peers").reread("peers")
        self.assertEqual([], lists.used("groups"))
        lists.reread("groups")
        self.assertEqual(["odd"], lists.used("groups"))

    def test_changes_each_time(self) -> None:
        """A group that changes at each reading, and names a missing id, is used."""
        lists = Lists().read(peers=PEERS, groups=(group("odd", "x"),))
        for turn in range(4):
            lists.reread("peers")
            lists.read(groups=(group("odd", "x", *["p", "q"][: turn % 2 + 1]),))
        lists.reread("peers")
        self.assertEqual(["odd"], lists.used("groups"))

    def test_two_lists(self) -> None:
        """Whom a rule names is a user or a peer."""
        rule = AgentBudgetRule(id="rule", target_users=("p", "u"))
        lists = Lists().read(agent_providers=(AgentProvider(id="a"),))
        lists.read(peers=PEERS, users=(User(id="u"),), agent_budget_rules=(rule,))
        self.assertEqual(["rule"], lists.used("agent_budget_rules"))


class RemovedTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.lists = Lists().read(peers=PEERS, groups=GROUPS, routes=ROUTES)

    def test_named(self) -> None:
        """A removed record stays until what names it was read again."""
        self.lists.read(groups=GROUPS[1:])
        self.assertEqual(["g", "h"], self.lists.used("groups"))
        self.assertEqual({"routes"}, self.lists.due)
        self.lists.read(routes=(route("other", "h"),))
        self.lists.reread("groups").reread("peers")
        self.assertEqual(["h"], self.lists.used("groups"))

    def test_still_named(self) -> None:
        """A record that is named after that is missing."""
        self.lists.read(groups=GROUPS[1:]).reread("routes")
        self.assertEqual(["h"], self.lists.used("groups"))
        self.assertEqual(set(), self.lists.due)

    def test_not_named(self) -> None:
        """A removed record that no other names goes at once."""
        self.lists.read(groups=GROUPS[:1])
        self.assertEqual(["g"], self.lists.used("groups"))
        self.assertEqual(set(), self.lists.due)

    def test_back(self) -> None:
        """A removed record that is there again is used as it is now."""
        self.lists.read(peers=PEERS[1:])
        self.assertEqual(["p", "q"], self.lists.used("peers"))
        self.lists.read(peers=PEERS)
        self.assertEqual({}, self.lists.inventory.joins.removed)

    def test_of_a_held_version(self) -> None:
        """What a previous version names stays as long as that is used."""
        self.lists.read(groups=GROUPS[1:], routes=(route("r", "h"),))
        self.assertEqual(["g", "h"], self.lists.used("groups"))
        self.lists.reread("groups").reread("peers")
        self.assertEqual(["h"], self.lists.used("groups"))

    def test_chain(self) -> None:
        """So does what a removed record names."""
        self.lists.read(groups=GROUPS[1:], peers=PEERS[1:])
        self.assertEqual(["p", "q"], self.lists.used("peers"))
        self.lists.read(routes=())
        self.assertEqual(["q"], self.lists.used("peers"))

    def test_emptied(self) -> None:
        """A group that lost its last peer keeps it until its routes are read again."""
        self.lists.read(groups=(group("g"), GROUPS[1])).reread("peers")
        self.assertEqual(
            GROUPS,
            tuple(sorted(self.lists.inventory.joined.groups or (), key=lambda g: g.id)),
        )
        self.assertEqual({"routes"}, self.lists.due)
        self.lists.read(groups=GROUPS[1:])
        self.assertIn(GROUPS[0], self.lists.inventory.joined.groups or ())
        self.lists.read(routes=())
        self.assertEqual(["h"], self.lists.used("groups"))


class NetworkTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.network = Network(id="n", routers=("w",), resources=("s",))
        self.lists = Lists().read(
            peers=PEERS,
            groups=GROUPS,
            networks=(self.network,),
            network_routers=(NetworkRouter(id="w", peer="p"),),
            network_resources=(NetworkResource(id="s"),),
        )

    def test_new_resource(self) -> None:
        """A new resource, which a network lists, waits for the networks."""
        both = (NetworkResource(id="s"), NetworkResource(id="t"))
        self.lists.read(network_resources=both)
        self.assertEqual(["s"], self.lists.used("network_resources"))
        self.assertEqual({"networks"}, self.lists.due)
        listing = Network(id="n", routers=("w",), resources=("s", "t"))
        self.lists.read(networks=(listing,))
        self.lists.reread("network_routers").reread("network_resources")
        self.assertEqual(["s", "t"], self.lists.used("network_resources"))
        self.assertEqual((listing,), self.lists.inventory.joined.networks)

    def test_new_network(self) -> None:
        """A network and its resource come together, whichever is read first."""
        listing = Network(id="m", routers=(), resources=("t",))
        both = (NetworkResource(id="s"), NetworkResource(id="t"))
        self.lists.read(networks=(self.network, listing), network_resources=both)
        self.assertEqual(["n"], self.lists.used("networks"))
        self.lists.reread("network_routers")
        self.assertEqual(["s"], self.lists.used("network_resources"))
        self.lists.reread("networks")
        self.assertEqual(["s", "t"], self.lists.used("network_resources"))
        self.assertEqual(["m", "n"], self.lists.used("networks"))

    def test_other_router(self) -> None:
        """A router is replaced: its network, which is older, keeps the one before."""
        [before] = self.lists.inventory.network_routers or ()
        routers = (NetworkRouter(id="w", enabled=True, peer="p"), NetworkRouter(id="v"))
        self.lists.read(network_routers=routers).reread("groups").reread("peers")
        self.assertIn(before, self.lists.inventory.joined.network_routers or ())
        self.assertEqual({"networks"}, self.lists.due)

    def test_removed_network(self) -> None:
        """A network stays as long as its resources are older."""
        self.lists.read(networks=())
        self.assertEqual(["n"], self.lists.used("networks"))
        self.lists.read(network_resources=())
        self.assertEqual([], self.lists.used("networks"))

    def test_long_chain(self) -> None:
        """Of records that wait for each other in a row each is looked at few times."""
        looked = 0

        class Ids(tuple[str, ...]):
            def __iter__(self) -> Iterator[str]:
                nonlocal looked
                looked += 1
                return super().__iter__()

        count = 300
        resources = [NetworkResource(id=f"{n}") for n in range(count + 1)]
        networks = [
            Network(id=f"{n}", resources=Ids((f"{n}", f"{n + 1}")))
            for n in range(count)
        ]
        lists = Lists().read(network_resources=(*resources,), networks=(*networks,))
        resources = [replace(resource, name="new") for resource in resources]
        networks = [replace(network, name="new") for network in networks]
        lists.read(network_resources=(*resources,), networks=(*networks,))
        looked = 0
        resources[0] = replace(resources[0], name="newer")
        lists.read(network_resources=(*resources,))
        waiting = lists.inventory.joins.held
        self.assertEqual(count, len(waiting["networks"]))
        self.assertEqual(count + 1, len(waiting["network_resources"]))
        self.assertLess(looked, 20 * count)


class PartialTests(SynchronousTestCase):
    def test_hidden(self) -> None:
        """A token that sees a part of the peers concludes nothing from the others."""
        me = User(id="me", is_current=True, role="user")
        lists = Lists().read(peers=PEERS, users=(me,))
        groups = (*GROUPS, group("odd", "p", "hidden"))
        routes = (*ROUTES, route("odd", "odd"), route("hidden", peer="hidden"))
        lists.read(groups=groups, routes=routes)
        for _ in range(3):
            lists.reread("peers").reread("groups").reread("routes")
        self.assertEqual(["g", "h"], lists.used("groups"))
        self.assertEqual(["r"], lists.used("routes"))
        self.assertEqual(["p", "q"], lists.used("peers"))

    def test_known_later(self) -> None:
        """What is made of the peers is made again when a part turns out to be all."""
        me = User(id="me", is_current=True, role="user")
        lists = Lists().read(peers=PEERS, users=(me,))
        before = lists.inventory.changes["peers"]
        lists.read(users=(User(id="me", is_current=True, role="admin"),))
        self.assertIsNot(before, lists.inventory.changes["peers"])

    def test_all_seen(self) -> None:
        """Where all ids are there nothing is left out."""
        me = User(id="me", is_current=True, role="user")
        lists = Lists().read(peers=PEERS, users=(me,), groups=GROUPS, routes=ROUTES)
        self.assertIs(lists.inventory, lists.inventory.joined)

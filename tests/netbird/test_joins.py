"""The records that joins use, list by list."""

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

    def repeat(self, name: str) -> "Lists":
        """Read the same body again."""
        self._clock += 2
        reading = Reading(self._clock, self._clock + 1)
        self.inventory = self.inventory.settle(self.inventory, name, reading)
        return self

    def used(self, name: str) -> list[str]:
        """Return the ids of the records that joins use."""
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
        """Joins use all records if all ids exist."""
        self.assertIs(self.lists.inventory, self.lists.inventory.joined)
        self.assertEqual(set(), self.lists.due)

    def test_new(self) -> None:
        """A new record is left out until the lists that it names were read after it."""
        self.lists.read(routes=(*ROUTES, route("new", "later"), route("n", "h")))
        self.assertEqual(["r"], self.lists.used("routes"))
        self.assertEqual({"groups", "peers"}, self.lists.due)
        self.lists.repeat("peers")
        self.lists.read(groups=(*GROUPS, group("later", "p")))
        self.assertEqual(["n", "r"], self.lists.used("routes"))
        self.assertEqual(["g", "h"], self.lists.used("groups"))
        self.lists.repeat("peers")
        self.assertEqual(["n", "new", "r"], self.lists.used("routes"))
        self.assertEqual(set(), self.lists.due)

    def test_changed(self) -> None:
        """Joins use the previous version of a record, even after more changes."""
        for groups in (("h",), ("g", "h")):
            self.lists.read(routes=(route("r", *groups),))
            self.assertEqual(ROUTES, self.lists.inventory.joined.routes)
        self.lists.repeat("groups").repeat("peers")
        self.assertEqual((route("r", "g", "h"),), self.lists.inventory.joined.routes)

    def test_overlap(self) -> None:
        """A reading that had begun earlier does not count."""
        before = self.lists.inventory
        after = before.with_("routes", (*ROUTES, route("new", "g")))
        after = after.settle(before, "routes", Reading(50, 60))
        for name, began in (("groups", 61), ("peers", 55)):
            after = after.settle(after, name, Reading(began, began + 10))
        self.assertEqual(ROUTES, after.joined.routes)
        self.assertEqual({"peers"}, set(after.joins.due))

    def test_other_lists(self) -> None:
        """A list whose ids no join names changes nothing."""
        self.lists.read(setup_keys=())
        self.assertEqual(set(), self.lists.due)

    def test_unaffected(self) -> None:
        """Metrics of other lists are not made again after a change in one list."""
        before = self.lists.inventory.changes
        self.lists.read(peers=(Peer(id="p", connected=True), PEERS[1]))
        after = self.lists.inventory.changes
        self.assertEqual({"peers"}, {n for n in after if after[n] is not before[n]})

    def test_withdrawn(self) -> None:
        """No record waits for a withdrawn list, and none of that list is kept."""
        self.lists.read(routes=(*ROUTES, route("new", "g")), groups=None)
        self.assertEqual({"peers"}, self.lists.due)
        self.lists.read(routes=None, peers=None)
        self.assertEqual(set(), self.lists.due)
        self.assertEqual({}, self.lists.inventory.joins.held)
        self.assertEqual({}, self.lists.inventory.joins.removed)

    def test_gone_again(self) -> None:
        """A new record that is removed again leaves no trace."""
        self.lists.read(routes=(*ROUTES, route("new", "g")))
        self.lists.read(routes=ROUTES)
        self.assertEqual(SETTLED.held, self.lists.inventory.joins.held)
        self.assertIs(self.lists.inventory, self.lists.inventory.joined)


class FirstTests(SynchronousTestCase):
    def test_missing(self) -> None:
        """After a first reading only records with missing ids wait."""
        lists = Lists().read(peers=PEERS, groups=(*GROUPS, group("odd", "x")))
        self.assertEqual(["g", "h"], lists.used("groups"))
        self.assertEqual({"peers"}, lists.due)
        lists.repeat("peers")
        self.assertEqual(["g", "h"], lists.used("groups"))
        self.assertEqual({"groups"}, lists.due, "both may be deleted by now")
        lists.repeat("groups")
        self.assertEqual(["g", "h", "odd"], lists.used("groups"))
        self.assertEqual(set(), lists.due)

    def test_stays(self) -> None:
        """An id that counts as missing once stays missing until it exists."""
        lists = Lists().read(peers=PEERS, groups=(group("odd", "x"),))
        lists.repeat("peers").repeat("groups").repeat("peers").repeat("peers")
        self.assertEqual(["odd"], lists.used("groups"))
        self.assertEqual(set(), lists.due)

    def test_missing_meanwhile(self) -> None:
        """One reading of groups is enough after several readings of peers."""
        lists = Lists().read(peers=PEERS, groups=(group("odd", "x"),))
        lists.repeat("peers").repeat("peers").repeat("peers")
        self.assertEqual([], lists.used("groups"))
        lists.repeat("groups")
        self.assertEqual(["odd"], lists.used("groups"))

    def test_changes_each_time(self) -> None:
        """Joins use a group that names a missing id and changes at each reading."""
        lists = Lists().read(peers=PEERS, groups=(group("odd", "x"),))
        for number in range(4):
            lists.repeat("peers")
            lists.read(groups=(group("odd", "x", *["p", "q"][: number % 2 + 1]),))
        lists.repeat("peers")
        self.assertEqual(["odd"], lists.used("groups"))

    def test_two_lists(self) -> None:
        """A target user of a rule may be a user or a peer."""
        rule = AgentBudgetRule(id="rule", target_users=("p", "u"))
        lists = Lists().read(agent_providers=(AgentProvider(id="a"),))
        lists.read(peers=PEERS, users=(User(id="u"),), agent_budget_rules=(rule,))
        self.assertEqual(["rule"], lists.used("agent_budget_rules"))


class RemovedTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.lists = Lists().read(peers=PEERS, groups=GROUPS, routes=ROUTES)

    def test_named(self) -> None:
        """A removed record stays until the list that names it was read again."""
        self.lists.read(groups=GROUPS[1:])
        self.assertEqual(["g", "h"], self.lists.used("groups"))
        self.assertEqual({"routes"}, self.lists.due)
        self.lists.read(routes=(route("other", "h"),))
        self.lists.repeat("groups").repeat("peers")
        self.assertEqual(["h"], self.lists.used("groups"))

    def test_still_named(self) -> None:
        """A removed record that is named after that is missing."""
        self.lists.read(groups=GROUPS[1:]).repeat("routes")
        self.assertEqual(["h"], self.lists.used("groups"))
        self.assertEqual(set(), self.lists.due)

    def test_not_named(self) -> None:
        """A removed record that no other record names is removed at once."""
        self.lists.read(groups=GROUPS[:1])
        self.assertEqual(["g"], self.lists.used("groups"))
        self.assertEqual(set(), self.lists.due)

    def test_back(self) -> None:
        """A removed record that returns is used in its new version."""
        self.lists.read(peers=PEERS[1:])
        self.assertEqual(["p", "q"], self.lists.used("peers"))
        self.lists.read(peers=PEERS)
        self.assertEqual({}, self.lists.inventory.joins.removed)

    def test_of_a_held_version(self) -> None:
        """A record that a previous version names stays while joins use that version."""
        self.lists.read(groups=GROUPS[1:], routes=(route("r", "h"),))
        self.assertEqual(["g", "h"], self.lists.used("groups"))
        self.lists.repeat("groups").repeat("peers")
        self.assertEqual(["h"], self.lists.used("groups"))

    def test_chain(self) -> None:
        """A record that a removed record names stays, too."""
        self.lists.read(groups=GROUPS[1:], peers=PEERS[1:])
        self.assertEqual(["p", "q"], self.lists.used("peers"))
        self.lists.read(routes=())
        self.assertEqual(["q"], self.lists.used("peers"))

    def test_emptied(self) -> None:
        """A group that lost its last peer keeps it until its routes are read again."""
        self.lists.read(groups=(group("g"), GROUPS[1])).repeat("peers")
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
        """A new resource in a network waits for the list of networks."""
        both = (NetworkResource(id="s"), NetworkResource(id="t"))
        self.lists.read(network_resources=both)
        self.assertEqual(["s"], self.lists.used("network_resources"))
        self.assertEqual({"networks"}, self.lists.due)
        listing = Network(id="n", routers=("w",), resources=("s", "t"))
        self.lists.read(networks=(listing,))
        self.lists.repeat("network_routers").repeat("network_resources")
        self.assertEqual(["s", "t"], self.lists.used("network_resources"))
        self.assertEqual((listing,), self.lists.inventory.joined.networks)

    def test_new_network(self) -> None:
        """A network and its resource are used together, in any order of reading."""
        listing = Network(id="m", routers=(), resources=("t",))
        both = (NetworkResource(id="s"), NetworkResource(id="t"))
        self.lists.read(networks=(self.network, listing), network_resources=both)
        self.assertEqual(["n"], self.lists.used("networks"))
        self.lists.repeat("network_routers")
        self.assertEqual(["s"], self.lists.used("network_resources"))
        self.lists.repeat("networks")
        self.assertEqual(["s", "t"], self.lists.used("network_resources"))
        self.assertEqual(["m", "n"], self.lists.used("networks"))

    def test_other_router(self) -> None:
        """A network that is older than its new router keeps the previous router."""
        [before] = self.lists.inventory.network_routers or ()
        routers = (NetworkRouter(id="w", enabled=True, peer="p"), NetworkRouter(id="v"))
        self.lists.read(network_routers=routers).repeat("groups").repeat("peers")
        self.assertIn(before, self.lists.inventory.joined.network_routers or ())
        self.assertEqual({"networks"}, self.lists.due)

    def test_removed_network(self) -> None:
        """A removed network stays while the list of its resources is older."""
        self.lists.read(networks=())
        self.assertEqual(["n"], self.lists.used("networks"))
        self.lists.read(network_resources=())
        self.assertEqual([], self.lists.used("networks"))

    def test_long_chain(self) -> None:
        """A long chain of waiting records needs few look-ups of each record."""
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
        """A token that sees only some peers draws no conclusion from other peers."""
        me = User(id="me", is_current=True, role="user")
        lists = Lists().read(peers=PEERS, users=(me,))
        groups = (*GROUPS, group("odd", "p", "hidden"))
        routes = (*ROUTES, route("odd", "odd"), route("hidden", peer="hidden"))
        lists.read(groups=groups, routes=routes)
        for _ in range(3):
            lists.repeat("peers").repeat("groups").repeat("routes")
        self.assertEqual(["g", "h"], lists.used("groups"))
        self.assertEqual(["r"], lists.used("routes"))
        self.assertEqual(["p", "q"], lists.used("peers"))

    def test_known_later(self) -> None:
        """Metrics of peers are made again when the list turns out to be complete."""
        me = User(id="me", is_current=True, role="user")
        lists = Lists().read(peers=PEERS, users=(me,))
        before = lists.inventory.changes["peers"]
        lists.read(users=(User(id="me", is_current=True, role="admin"),))
        self.assertIsNot(before, lists.inventory.changes["peers"])

    def test_all_seen(self) -> None:
        """Nothing is left out if all ids exist."""
        me = User(id="me", is_current=True, role="user")
        lists = Lists().read(peers=PEERS, users=(me,), groups=GROUPS, routes=ROUTES)
        self.assertIs(lists.inventory, lists.inventory.joined)

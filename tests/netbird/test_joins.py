"""The records that joins use, list by list."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.joins import Reading
from api_exporter.netbird.records import Group, GroupId, Member, Peer, User
from api_exporter.subjects.agent_network.records import AgentBudgetRule, AgentProvider
from api_exporter.subjects.networks import Network, NetworkResource, NetworkRouter
from api_exporter.subjects.policies import Policy, Rule
from api_exporter.subjects.routes import Route
from tests.inventories import inventory_of

MADE: Mapping[str, Callable[..., Any]] = {
    "peers": lambda id_: Peer(id=id_),
    "groups": lambda id_, *peers: Group(
        id=id_, peers=tuple(Member(id=peer) for peer in peers)
    ),
    "routes": lambda id_, *groups: Route(
        id=id_,
        peer="".join(name[1:] for name in groups if name[0] == "@"),
        peer_groups=tuple(name for name in groups if name[0] != "@"),
    ),
    "networks": lambda id_, *parts: Network(
        id=id_,
        routers=tuple(part[1:] for part in parts if part[0] == ">"),
        resources=tuple(part for part in parts if part[0] != ">"),
    ),
    "network_routers": lambda id_, *peer: NetworkRouter(id=id_, peer="".join(peer)),
    "network_resources": lambda id_: NetworkResource(id=id_),
    "policies": lambda id_, source, destination: Policy(
        id=id_,
        rules=(
            Rule(
                sources=(GroupId(id=source),), destinations=(GroupId(id=destination),)
            ),
        ),
    ),
    "users": lambda id_, role="user": User(id=id_, is_current=True, role=role),
}
"""Functions that return a record of a list: its id, and the ids that it names."""

ONE = "peers p q, groups g(p) h(q), routes r(g)"
NETWORK = "networks n(>w s), network_routers w(p), network_resources s"

STORIES = f"""
Joins use all records if all ids exist.
{ONE} → settled

So do joins of a token that sees only some peers.
users me(user), {ONE} → settled

A new record is left out until the lists that it names were read after it.
{ONE}, routes r(g) new(later) n(h) → routes r(g), due groups peers
peers again, groups g(p) h(q) later(p) → routes r(g) n(h), groups g(p) h(q)
peers again → routes r(g) n(h) new(later), settled

Joins use the previous version of a record, even after more changes.
{ONE}, routes r(h) → routes r(g)
routes r(g h) → routes r(g)
groups again, peers again → routes r(g h)

A list whose ids no join names changes nothing.
{ONE}, setup_keys → settled

No record waits for a withdrawn list, and none of that list is kept.
{ONE}, routes r(g) new(g), groups gone → due peers
routes gone, peers gone → settled

A new record that is removed again leaves no trace.
{ONE}, routes r(g) new(g), routes r(g) → settled

After a first reading only records with missing ids wait: both may be deleted by now.
peers p q, groups g(p) h(q) odd(x) → groups g(p) h(q), due peers
peers again → groups g(p) h(q), due groups
groups again → groups g(p) h(q) odd(x), due

An id that counts as missing once stays missing until it exists.
peers p q, groups odd(x), peers again, groups again → groups odd(x), due
peers again, peers again → groups odd(x), due

One reading of groups is enough after several readings of peers.
peers p q, groups odd(x), peers again, peers again, peers again → groups
groups again → groups odd(x)

Joins use a group that names a missing id and changes at each reading.
peers p q, groups odd(x), peers again, groups odd(x p), peers again → groups odd(x p)
groups odd(x p q), peers again → groups odd(x p)

A removed record stays until the list that names it was read again.
{ONE}, groups h(q) → groups g(p) h(q), due routes
routes other(h), groups again, peers again → groups h(q)

A removed record that is named after that is missing.
{ONE}, groups h(q), routes again → groups h(q), due

A removed record that no other record names is removed at once.
{ONE}, groups g(p) → groups g(p), due

A removed record that returns is used in its new version.
{ONE}, peers q → peers p q
peers p q → settled

A record that a previous version names stays while joins use that version.
{ONE}, groups h(q), routes r(h) → groups g(p) h(q)
groups again, peers again → groups h(q)

A record that a removed record names stays, too.
{ONE}, groups h(q), peers q → peers p q
routes → peers q

A group that lost its last peer keeps it until its routes are read again.
{ONE}, groups g h(q), peers again → groups g(p) h(q), due routes
groups h(q) → groups g(p) h(q)
routes → groups h(q)

A changed group is used at once if it names known peers; its old version goes.
{ONE}, groups g(p q) h(q), peers again → groups g(p q) h(q), due
groups g(q) h(q), peers again → groups g(q) h(q), due

A policy waits for the groups of both sides.
{ONE}, policies a(g h) → settled
{ONE}, policies a(g h) b(later h) → policies a(g h), due groups
{ONE}, policies a(g h) b(g later) → policies a(g h), due groups

A new resource in a network waits for the list of networks.
{NETWORK}, network_resources s t → network_resources s, due networks
networks n(>w s t), network_routers again → networks n(>w s)
network_resources again → networks n(>w s t), network_resources s t

A network and its resource are used together, in any order of reading.
{NETWORK}, networks n(>w s) m(t), network_resources s t → networks n(>w s)
network_routers again → network_resources s
networks again → network_resources s t, networks n(>w s) m(t)

A removed network stays while the list of its resources is older.
{NETWORK}, networks → networks n(>w s)
network_resources → networks

"""


class Lists:
    """An inventory whose lists are read one after the other."""

    def __init__(self) -> None:
        self.inventory = inventory_of()
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

    def go(self, steps: str) -> "Lists":
        """Read lists: other records, `again` the same body, or `gone` for none."""
        for step in steps.split(", "):
            name, _, text = step.partition(" ")
            if text == "again":
                self._clock += 2
                reading = Reading(self._clock, self._clock + 1)
                self.inventory = self.inventory.settle(self.inventory, name, reading)
            else:
                self.read(**{name: None if text == "gone" else records(name, text)})
        return self

    def used(self, name: str) -> list[object]:
        """Return the records that joins use."""
        return sorted(self.inventory.joined.records[name], key=attrgetter("id"))

    @property
    def due(self) -> set[str]:
        return set(self.inventory.joins.due)


def records(name: str, text: str) -> tuple[object, ...]:
    """Return the records of a text such as `g(p q) h`: ids, and the ids they name."""
    found = re.findall(r"(\w+)(?:\(([^)]*)\))?", text)
    return tuple(record(name, id_, names) for id_, names in found)


@cache
def record(name: str, id_: str, names: str) -> object:
    """Return a record: the same object each time, as after decoding."""
    return MADE[name](id_, *names.split())


class StoryTests(SynchronousTestCase):
    def test_stories(self) -> None:
        """All stories. A line is a step: the lists that are read, one by one, and then
        the records that joins use, and the lists that are due early. `settled` means
        that all records are used.
        """
        for story in STORIES.strip().split("\n\n"):
            lists = Lists()
            for line in story.splitlines()[1:]:
                steps, _, claims = line.partition(" → ")
                lists.go(steps)
                for claim in claims.split(", "):
                    name, _, text = claim.partition(" ")
                    said = f"{line} in:\n{story}"
                    if name == "settled":
                        self.assertIs(lists.inventory, lists.inventory.joined, said)
                        self.assertEqual(set(), lists.due, said)
                    elif name == "due":
                        self.assertEqual(set(text.split()), lists.due, said)
                    else:
                        expected = sorted(records(name, text), key=attrgetter("id"))
                        self.assertEqual(expected, lists.used(name), said)


class ListTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.lists = Lists().go(ONE)

    def test_overlap(self) -> None:
        """A reading that had begun earlier does not count."""
        before = self.lists.inventory
        after = before.with_("routes", records("routes", "r(g) new(g)"))
        after = after.settle(before, "routes", Reading(50, 60))
        for name, began in (("groups", 61), ("peers", 55)):
            after = after.settle(after, name, Reading(began, began + 10))
        self.assertEqual(before.records["routes"], after.joined.records["routes"])
        self.assertEqual({"peers"}, set(after.joins.due))

    def test_unaffected(self) -> None:
        """Metrics of other lists are not made again after a change in one list."""
        before = self.lists.inventory.changes
        self.lists.read(peers=(Peer(id="p", connected=True), Peer(id="q")))
        after = self.lists.inventory.changes
        self.assertEqual({"peers"}, {n for n in after if after[n] is not before[n]})

    def test_two_lists(self) -> None:
        """A target user of a rule may be a user or a peer."""
        rule = AgentBudgetRule(id="rule", target_users=("p", "me"))
        self.lists.go("users me(admin)").read(agent_providers=(AgentProvider(id="a"),))
        self.lists.read(agent_budget_rules=(rule,))
        self.assertEqual([rule], self.lists.used("agent_budget_rules"))

    def test_other_router(self) -> None:
        """A network that is older than its new router keeps the previous router."""
        [before] = self.lists.go(NETWORK).inventory.records["network_routers"]
        routers = (NetworkRouter(id="w", enabled=True, peer="p"), NetworkRouter(id="v"))
        self.lists.read(network_routers=routers).go("groups again, peers again")
        self.assertIn(before, self.lists.used("network_routers"))
        self.assertEqual({"networks"}, self.lists.due)

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

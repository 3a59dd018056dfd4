"""The bound on the ids that joins look up: one sum for each list."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import Group, GroupId, Member
from api_exporter.netbird.resources import MAX_NAMED_IDS, check_named_ids
from api_exporter.ports import UpstreamError
from api_exporter.subjects.networks import (
    Network,
    NetworkRouter,
    network_routing_peers,
    routers_by_network,
)
from api_exporter.subjects.policies import POLICIES, Policy, Rule
from api_exporter.subjects.routes import ROUTES, Route
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.inventories import inventory_of

NAMED = MAX_NAMED_IDS + 1


def policy(groups: int, checks: int) -> Policy:
    """Return a policy with this many source groups and posture checks."""
    sources = tuple(GroupId(id=f"{n}") for n in range(groups))
    ids = tuple(f"{n}" for n in range(checks))
    rules = (Rule(enabled=True, sources=sources),)
    return Policy(id="p", enabled=True, rules=rules, source_posture_checks=ids)


class JoinSizeTests(SynchronousTestCase):
    def test_networks(self) -> None:
        """Groups of a router are looked up for one network, however many list it."""
        routers = [
            NetworkRouter(id=f"{n}", enabled=True, peer=f"{n}") for n in range(3)
        ]
        networks = [
            Network(id="b", routers=("1", "2", "1", "no")),
            Network(id="c", routers=("1",)),
            Network(id="a", routers=("2", "0")),
        ]
        inventory = inventory_of(
            networks=tuple(networks), network_routers=tuple(routers)
        )
        found = routers_by_network(inventory)
        self.assertEqual({"c": routers[1:2], "b": routers[2:], "a": routers[:1]}, found)
        self.assertEqual({"a", "b", "c"}, {*network_routing_peers(inventory)})

    def test_policies(self) -> None:
        """The source groups of a policy count for each of its posture checks."""
        for groups, checks, names in (3, 2, 9), (3, 0, 3), (0, 2, 2), (0, 0, 0):
            self.assertEqual(names, POLICIES.named_ids(policy(groups, checks)))
        check_named_ids(POLICIES.named_ids, [policy(499, 2)] * 668)
        with self.assertRaises(UpstreamError) as raised:
            check_named_ids(POLICIES.named_ids, [policy(499, 2)] * 669)
        self.assertEqual("too_large", raised.exception.reason)

    def test_members(self) -> None:
        """The members of groups do not count: a network of any size has them."""
        check_named_ids(
            RESOURCE_BY_NAME["groups"].named_ids,
            [Group(id="g", peers=(Member(id="p"),) * NAMED)],
        )
        routes = [Route(id="r", peer_groups=("g",) * NAMED)]
        self.assertRaises(UpstreamError, check_named_ids, ROUTES.named_ids, routes)

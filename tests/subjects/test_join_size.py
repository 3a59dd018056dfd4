"""The bound on joins that go through another list."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.join_size import MAX_NAMED_IDS, check_named_ids
from api_exporter.netbird.records import Group, GroupId, Member
from api_exporter.ports import UpstreamError
from api_exporter.subjects.networks import Network, NetworkRouter
from api_exporter.subjects.policies import (
    Checks,
    Policy,
    PostureCheck,
    Rule,
    VersionCheck,
)
from api_exporter.subjects.routes import ROUTES, Route
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.inventories import inventory_of

NAMES = 1000
NAMED = MAX_NAMED_IDS + 1
PAIRS = MAX_NAMED_IDS // NAMES


def networks(count: int) -> Inventory:
    """Return networks with one router, which names many groups."""
    router = NetworkRouter(id="r", peer_groups=("g",) * NAMES)
    return inventory_of(
        networks=tuple(Network(id=f"{n}", routers=("r", "no")) for n in range(count)),
        network_routers=(router,),
    )


def posture_checks(count: int, minimum: str = "1.0.0") -> Inventory:
    """Return checks, each used by a large policy and by one without groups."""
    checks = Checks(nb_version_check=VersionCheck(min_version=minimum))
    ids = tuple(f"{n}" for n in range(count))
    rule = Rule(enabled=True, sources=tuple(GroupId(id=f"{n}") for n in range(NAMES)))
    return inventory_of(
        posture_checks=tuple(PostureCheck(id=id_, checks=checks) for id_ in ids),
        policies=(
            Policy(id="all", enabled=True, rules=(rule,), source_posture_checks=ids),
            *(Policy(id=i, enabled=True, source_posture_checks=(i,)) for i in ids),
        ),
    )


class JoinSizeTests(SynchronousTestCase):
    def refused(self, inventory: Inventory, changed: str) -> str:
        """Return the error."""
        error = self.assertRaises(
            UpstreamError, RESOURCE_BY_NAME[changed].check, inventory
        )
        self.assertEqual("too_large", error.reason)
        return str(error)

    def test_networks(self) -> None:
        """Groups that networks name through routers are bounded together."""
        for changed in ("networks", "network_routers"):
            RESOURCE_BY_NAME[changed].check(networks(PAIRS))
            self.assertIn(
                "the networks name 1001000 groups through their routers;"
                " the maximum is 1000000",
                self.refused(networks(PAIRS + 1), changed),
            )

    def test_policies(self) -> None:
        """Source groups of posture checks through policies are bounded together."""
        for changed in ("policies", "posture_checks"):
            RESOURCE_BY_NAME[changed].check(posture_checks(PAIRS))
            self.assertIn(
                "the posture checks have 1001000 source groups through their policies;"
                " the maximum is 1000000",
                self.refused(posture_checks(PAIRS + 1), changed),
            )
            RESOURCE_BY_NAME[changed].check(posture_checks(PAIRS + 1, "any"))

    def test_members(self) -> None:
        """The members of groups do not count: a network of any size has them."""
        check_named_ids(
            RESOURCE_BY_NAME["groups"].named_ids,
            [Group(id="g", peers=(Member(id="p"),) * NAMED)],
        )
        routes = [Route(id="r", peer_groups=("g",) * NAMED)]
        self.assertRaises(UpstreamError, check_named_ids, ROUTES.named_ids, routes)

    def test_other(self) -> None:
        """Other lists change nothing."""
        RESOURCE_BY_NAME["peers"].check(networks(PAIRS + 1))

"""What the simulated network shows of all there is to find, in a week."""

from collections import Counter
from collections.abc import Generator
from typing import TypeVar

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finders import FINDERS
from api_exporter.attention.thresholds import Groups, shipped
from api_exporter.demo.api import Network
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import RESOURCES
from simulation.company.incidents import LINE_CUT
from simulation.company.network import SimulatedNetwork
from simulation.company.schedules import MINUTE, MONDAY, WEEK
from tests.attention.looking import NOW, findings, seen
from tests.attention.test_thresholds import OTHERS

T = TypeVar("T")

STANDING = {
    "NetBirdImportantPeerOffline",
    "NetBirdNetworkUnreachable",
    "NetBirdPeerAwaitsApproval",
    "NetBirdPeersOutdated",
    "NetBirdPolicyEmpty",
    "NetBirdPostureCheckUnused",
    "NetBirdUserAwaitsApproval",
}
"""At every instant: there is always something to look at. What began before the whole
fleet dropped stays meanwhile."""

NEVER = {
    # The simulated API is always there and always whole: tests and newcomers use it.
    "ApiExporterUpstreamFailing",
    "ApiExporterRecordsRejected",
    "ApiExporterTokenNotWatched",
    # It is asked without TLS.
    "ApiExporterUpstreamCertificateExpiresSoon",
    "ApiExporterClientCertificateExpiresSoon",
    # The name that the test gives is right.
    "NetBirdImportantGroupMissing",
    # Nobody has said what a month may cost.
    "NetBirdAgentCostHigh",
    # A login lasts a day, as NetBird has it: to log in daily is routine.
    "NetBirdLoginExpiresSoon",
}

NAMED = replace(
    shipped(),
    groups=Groups(important=["servers"], routers=["routers"]),
    settings={"lazy_connection_enabled": True},
)
"""As an operator of this network names what matters."""

STEP = 10 * MINUTE

BEGIN = int((NOW - MONDAY) // WEEK) * WEEK + MONDAY
"""A Monday's."""


def result(steps: Generator[object, None, T]) -> T:
    """What a computation in slices ends with."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def known(network: Network, at: float) -> Inventory:
    """All that the network says at an instant."""
    inventory = Inventory(now=at)
    for resource in RESOURCES:
        asked = None
        while (path := resource.located(inventory, at)) not in {None, asked}:
            if resource.name == "events":
                break
            body = network.body(f"/{path}", at)
            if body is None:
                break
            before = getattr(inventory, resource.name) or ()
            decoded = resource.body.decode(
                b"".join(body), DecodeContext(before, now=at)
            )
            inventory = inventory.with_(resource.name, decoded.records)
            asked = path
    return inventory


class DemoTests(SynchronousTestCase):
    def test_week(self) -> None:
        """Each finding is there in a week, and ends, but for those that always are.

        That people go home at five is none.
        """
        network = SimulatedNetwork(60)
        times: Counter[str] = Counter()
        dropped = []
        for at in range(BEGIN, BEGIN + WEEK, STEP):
            inventory = known(network, at)
            looked = seen(inventory, now=at, thresholds=NAMED)
            every = findings(looked)
            times.update({one.alert for one in every})
            if "NetBirdFleetDropped" in {one.alert for one in every}:
                dropped.append(at)
            for one in every:
                self.assertRegex(one.message, r"^\S.*\.$")
        self.assertEqual(set(shipped().severities) - OTHERS - NEVER, set(times))
        always = {alert for alert in times if times[alert] == WEEK // STEP}
        self.assertEqual(STANDING, always)
        cut = LINE_CUT.start(dropped[0])
        self.assertLess(dropped[-1], cut + LINE_CUT.changes[-1] + STEP)

    def test_unknown(self) -> None:
        """Whichever resource is not known, the others' findings stay as they are."""
        whole = known(SimulatedNetwork(60), NOW)
        every = findings(seen(whole))
        for name in sorted({name for finder in FINDERS for name in finder.reads}):
            some = findings(seen(whole.with_(name, None)))
            self.assertLess(set(some), {*every, None}, name)

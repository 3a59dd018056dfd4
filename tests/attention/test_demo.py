"""What the simulated network shows of all there is to find."""

from collections.abc import Generator
from typing import TypeVar

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.findings import FINDERS
from api_exporter.demo.network import Network
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import RESOURCES
from tests.attention.looking import DAY, NOW, findings, seen

T = TypeVar("T")

SHOWN = {
    "NetBirdImportantPeerOffline",
    "NetBirdNetworkRedundancyLost",
    "NetBirdNetworkUnreachable",
    "NetBirdPeerAwaitsApproval",
    "NetBirdPeersOutdated",
    "NetBirdPolicyEmpty",
    "NetBirdProxyCertificateFailed",
    "NetBirdProxyClusterOffline",
    "NetBirdProxyServiceOpen",
    "NetBirdResourceUnreachable",
    "NetBirdSetupKeyExpiresSoon",
    "NetBirdSetupKeyUsedUp",
    "NetBirdUserAwaitsApproval",
}


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
    inventory = Inventory()
    for resource in RESOURCES:
        path = resource.located(inventory)
        body = None if path is None else network.body(f"/{path}", at)
        if body is not None:
            decoded = result(resource.body.decode(b"".join(body)))
            inventory = inventory.with_(resource.name, decoded.records)
    return inventory


class DemoTests(SynchronousTestCase):
    def test_week(self) -> None:
        """A week of the demo shows these, each with a sentence and a severity."""
        network = Network(60)
        shown: set[str] = set()
        for day in range(7):
            at = NOW + day * DAY
            for one in findings(seen(known(network, at), now=at)):
                shown.add(one.alert)
                self.assertRegex(one.words, r"^\S.*\.$")
        self.assertEqual(SHOWN, shown & SHOWN)

    def test_unknown(self) -> None:
        """Whichever resource is not known, the others' findings stay as they are."""
        whole = known(Network(60), NOW)
        every = findings(seen(whole))
        for name in sorted({name for finder in FINDERS for name in finder.reads}):
            some = findings(seen(whole.with_(name, None)))
            self.assertLess(set(some), {*every, None}, name)

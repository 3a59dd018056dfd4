"""The changes in the simulated network within an hour."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from simulation.company.network import SimulatedNetwork
from tests import tries
from tests.attention.test_demo import known
from tests.bodies import decoded
from tests.collectors.samples import PREFIX, Key, page, parsed
from tests.company.test_network import INSTANTS

STEP = 150
"""Seconds between two pages."""

LIVELY = (
    "setup_key_state",
    "network_resource_routing_peers_connected",
    "proxy_cluster_online",
    "proxy_cluster_connected_proxies",
    "proxy_token_last_used_timestamp_seconds",
)
"""Families of states and counts that change within an hour."""


def seen(network: SimulatedNetwork, at: float) -> dict[Key, float]:
    """Return all samples of the page at a time."""
    return dict(parsed(page(known(network, at))))


class ChangesTests(SynchronousTestCase):
    def test_within_an_hour(self) -> None:
        """Each of these families has a series that changes within any hour."""
        network = SimulatedNetwork(60)
        for begin in INSTANTS[: tries(3)]:
            before, changed = seen(network, begin), set()
            for seconds in range(STEP, 3600 + 1, STEP):
                now = seen(network, begin + seconds)
                changed |= {
                    key[0] for key in now if before.get(key, now[key]) != now[key]
                }
                before = now
            lively = {PREFIX + name for name in LIVELY}
            self.assertEqual(set(), lively - changed)

    def test_identity(self) -> None:
        """A proxy cluster keeps its series when its `id` changes each hour."""
        network = SimulatedNetwork(0)
        path = "/api/reverse-proxies/clusters"
        bodies = [
            b"".join(network.body(path, at) or ())
            for at in (INSTANTS[0], INSTANTS[0] + 3600)
        ]
        self.assertEqual(2, len(set(bodies)))
        first, second = (
            Inventory().with_("proxy_clusters", decoded("proxy_clusters", body).records)
            for body in bodies
        )
        self.assertEqual(
            *({key for key, _ in parsed(page(x))} for x in (first, second))
        )

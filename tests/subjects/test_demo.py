"""The simulated network shows nearly every finding within a week."""

from collections import Counter

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Groups, default_thresholds
from api_exporter.demo.api import SimulatedAccount
from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.table import FINDERS, RESOURCES
from simulation.company.incidents import LINE_CUT
from simulation.company.network import SimulatedNetwork
from simulation.company.schedules import DAY, HOUR, MINUTE, MONDAY, WEEK
from tests.attention.looking import NOW, findings, seen
from tests.inventories import inventory_of
from tests.reference.program import all_read

STANDING = {
    "NetBirdImportantPeerOffline",
    "NetBirdNetworkUnreachable",
    "NetBirdPeerAwaitsApproval",
    "NetBirdPeersOutdated",
    "NetBirdPolicyEmpty",
    "NetBirdPostureCheckUnused",
    "NetBirdResourceUnreachable",
    "NetBirdUserAwaitsApproval",
}
"""Alerts of findings that the simulated company has at every instant."""

NEVER = {
    # The simulated API is always reachable and complete: tests and newcomers use it.
    "ApiExporterUpstreamFailing",
    "ApiExporterRecordsRejected",
    "ApiExporterTokenNotWatched",
    # The exporter's own token is renewed long before it expires.
    "ApiExporterTokenExpiresSoon",
    "ApiExporterTokenExpiresVerySoon",
    # Its token may read everything, and PEER_DETAIL names no group.
    "ApiExporterUserRestricted",
    "ApiExporterDetailGroupMissing",
    # The exporter reaches it without TLS.
    "ApiExporterUpstreamCertificateExpiresSoon",
    "ApiExporterClientCertificateExpiresSoon",
    # The test names an existing group.
    "NetBirdImportantGroupMissing",
    # The threshold has no default.
    "NetBirdAgentCostHigh",
    # A login lasts a day in NetBird: a daily login is routine.
    "NetBirdLoginExpiresSoon",
}
"""Alerts of findings that the simulated company never has."""


NAMED = replace(
    default_thresholds(),
    groups=Groups(important=["servers"], routers=["routers"]),
    settings={"lazy_connection_enabled": True},
)
"""Thresholds that name the important groups and settings of this network."""

BEGIN = int((NOW - MONDAY) // WEEK) * WEEK + MONDAY
"""A Monday, in seconds since the epoch."""

STEP = 47 * MINUTE
"""Seconds between two looks, which so fall on many minutes of the hour."""

SHORT = range(BEGIN + 6 * DAY + HOUR, BEGIN + 6 * DAY + 5 * HOUR, 9 * MINUTE)
"""Looks on Sunday morning, which has the shortest incidents."""


def known(network: SimulatedAccount, at: float) -> Inventory:
    """Return the inventory of all responses of a network at an instant."""

    def body(_name: str, path: str) -> bytes | None:
        pieces = network.body(f"/{path}", at)
        return None if pieces is None else b"".join(pieces)

    resources = (r for r in RESOURCES if r.name != "events")
    return all_read(inventory_of(now=at), resources, at, body)


class DemoTests(SynchronousTestCase):
    def test_week(self) -> None:
        """Each finding appears and ends within a week, except standing ones."""
        network = SimulatedNetwork(60)
        times: Counter[str] = Counter()
        dropped = []
        looks = sorted({*range(BEGIN, BEGIN + WEEK, STEP), *SHORT})
        for at in looks:
            looked = seen(known(network, at), now=at, thresholds=NAMED)
            every = findings(looked)
            times.update({one.kind.name for one in every})
            if "NetBirdFleetDropped" in {one.kind.name for one in every}:
                dropped.append(at)
            for one in every:
                self.assertRegex(one.message, r"^\S.*\.$")
        self.assertEqual(set(default_thresholds().severities) - NEVER, set(times))
        always = {alert for alert in times if times[alert] == len(looks)}
        self.assertEqual(STANDING, always)
        cut = LINE_CUT.start(dropped[0])
        self.assertLess(dropped[-1], cut + LINE_CUT.changes[-1] + SHORT.step)

    def test_unknown(self) -> None:
        """If a resource is unknown, the findings of others stay as they are."""
        whole = known(SimulatedNetwork(60), NOW)
        every = findings(seen(whole))
        for name in sorted({name for finder in FINDERS for name in finder.reads}):
            some = findings(seen(whole.replacing(name, None)))
            self.assertLess(set(some), {*every, None}, name)

"""When an account's findings are looked for anew, and how many are kept."""

import tracemalloc

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finders import FINDERS
from api_exporter.attention.thresholds import changed
from api_exporter.attention.watch import Attention, FindingList
from api_exporter.exposition.tally import AT_ONCE
from api_exporter.netbird.agent_records import AgentProvider, AgentSettings
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Account,
    AccountSettings,
    Peer,
    ProxyCluster,
    Route,
    SetupKey,
    User,
)
from api_exporter.telemetry.freshness import Freshness
from tests.attention.looking import DAY, NOW, at

READ = Freshness(period=30, ended=NOW, last_success=NOW)

WAITING = Inventory().with_("users", (User(id="u", pending_approval=True),))

KEY = SetupKey(id="k", type="reusable", expires=at(2 * DAY), last_used=at(0))


class AttentionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.known = Inventory()
        self.time = NOW
        self.ends: tuple[float | None, float | None] = (None, None)
        self.standings = {"peers": READ}
        self.attention = Attention(
            lambda: self.known,
            standings=self.standings,
            now=lambda: self.time,
            ends=lambda: self.ends,
        )

    def test_thresholds(self) -> None:
        """An operator's own thresholds hold in place of those that are shipped."""
        severe = changed(b'{"severities": {"NetBirdUserAwaitsApproval": "critical"}}')
        for thresholds, severity in ((None, "info"), (severe, "critical")):
            attention = Attention(
                lambda: WAITING,
                standings=self.standings,
                now=lambda: self.time,
                thresholds=thresholds,
            )
            for _ in attention.look("users"):
                pass
            self.assertEqual(1, attention.found.counts[severity])

    def look(self, resource: str) -> FindingList:
        for _ in self.attention.look(resource):
            pass
        return self.attention.found

    def test_start(self) -> None:
        """Before anything is known there are no counts: not even of nothing."""
        self.standings["peers"] = Freshness(period=30)
        self.assertEqual({}, self.attention.found.counts)
        self.assertEqual({}, self.look("users").counts)
        self.standings["peers"] = READ
        self.assertEqual(
            {"critical": 0, "warning": 0, "info": 0}, self.look("peers").counts
        )

    def test_round(self) -> None:
        """A round of a resource finds what it has changed, and what is over."""
        self.known = WAITING
        self.assertEqual(1, self.look("users").counts["info"])
        self.known = self.known.with_("users", ())
        self.assertEqual(0, self.look("users").counts["info"])

    def test_unchanged(self) -> None:
        """A round that changes nothing finds nothing anew: nothing is looked at."""
        self.known = WAITING.with_("setup_keys", (KEY,))
        steps = [len(list(self.attention.look("users"))) for _ in range(2)]
        reading = [f for f in FINDERS if set(f.reads) & {"users", "setup_keys"}]
        self.assertGreaterEqual(steps[0] - steps[1], len(reading))
        self.assertEqual(1, self.attention.found.counts["info"])

    def test_many_peers(self) -> None:
        """Peers are gone through in steps, each a place to pause."""
        few = len(list(self.attention.look("peers")))
        peers = tuple(Peer(id=f"{n}") for n in range(5 * AT_ONCE))
        settings = AccountSettings(
            peer_login_expiration_enabled=True, peer_login_expiration=10 * 86400
        )
        accounts = (Account(id="a", settings=settings),)
        self.known = Inventory(peers=peers, groups=(), accounts=accounts)
        self.assertEqual(few + 15, len(list(self.attention.look("peers"))))

    def test_drop_once(self) -> None:
        """Whether many peers dropped is looked for after their rounds: a look after
        others costs the same however many there are.
        """
        peers = tuple(Peer(id=f"{n}") for n in range(3 * AT_ONCE))
        steps = []
        for some in ((), peers):
            self.known = Inventory(peers=some, groups=())
            self.look("peers")
            steps.append(len(list(self.attention.look("groups"))))
        self.assertEqual(steps[0], steps[1])
        self.known = self.known.with_("peers", peers)
        self.assertLess(steps[0] + 3, len(list(self.attention.look("groups"))))
        self.assertEqual(steps[0], len(list(self.attention.look("groups"))))

    def test_drop_beside(self) -> None:
        """A look after another resource finds the drop of newer peers, and its end."""
        there = tuple(Peer(id=f"{n}", connected=True) for n in range(15))
        lost = tuple(
            replace(peer, connected=False, last_seen=at(-60)) for peer in there[:10]
        )

        def drops() -> list[str]:
            found = self.attention.found.findings
            return [f.alert for f in found if f.alert == "NetBirdFleetDropped"]

        self.known = Inventory(peers=there, groups=(), users=())
        self.look("peers")
        self.known = self.known.with_("peers", (*lost, *there[10:])).with_(
            "users", None
        )
        self.look("users")  # beside it the peers were read
        self.assertEqual(["NetBirdFleetDropped"], drops())
        self.known = self.known.with_("peers", None)
        self.look("groups")
        self.assertEqual([], drops())
        self.known = self.known.with_("peers", (*lost, *there[10:]))
        self.look("peers")
        self.assertEqual(["NetBirdFleetDropped"], drops())
        self.time += 2 * 3600
        self.look("peers")  # the same body, later
        self.assertEqual([], drops())

    def test_ended(self) -> None:
        """A look that is ended halfway leaves nothing behind that breaks others."""
        peers = tuple(Peer(id=f"{n}") for n in range(3 * AT_ONCE))
        route = Route(id="r", enabled=True)
        for name, records in (("peers", peers), ("groups", ()), ("routes", (route,))):
            self.known = self.known.with_(name, records)
        ended = self.attention.look("peers")
        for _ in range(3):
            next(ended)
        ended.close()
        self.assertEqual(1, self.look("groups").counts["critical"])

    def test_withdrawn(self) -> None:
        """What is withdrawn is not told of any more, and said to be unknown."""
        self.known = WAITING
        self.standings["users"] = READ
        self.look("users")
        self.known = self.known.with_("users", None)
        found = self.look("users")
        self.assertEqual(((), ("peers", "users")), (found.findings, found.unknown))

    def test_last_provider(self) -> None:
        """A finding on what needs a provider goes with the last one."""
        kept = AgentSettings(enable_prompt_collection=True)
        provider = AgentProvider(id="a")
        self.known = self.known.with_("agent_providers", (provider,))
        self.known = self.known.with_("agent_settings", (kept,))
        self.assertEqual(1, sum(self.look("agent_settings").counts.values()))
        self.known = self.known.with_("agent_providers", ())
        self.assertEqual(0, sum(self.look("agent_providers").counts.values()))

    def test_time(self) -> None:
        """What only waits for its day is found after a round of the peers."""
        self.known = Inventory(setup_keys=(KEY,))
        self.assertEqual((), self.look("peers").findings)
        self.time += 2 * DAY
        self.assertEqual((), self.look("setup_keys").findings)
        self.assertEqual(1, self.look("peers").counts["warning"])

    def test_certificates(self) -> None:
        """Certificates belong to no resource: any round finds that they end."""
        self.ends = (NOW + DAY, NOW + DAY)
        self.assertEqual(2, self.look("groups").counts["warning"])
        self.ends = (NOW + 90 * DAY, None)
        self.assertEqual(0, self.look("groups").counts["warning"])

    def test_many(self) -> None:
        """All are kept, however many there are, the worst first."""
        keys = (replace(KEY, expires=at(-DAY)),) * 3000
        clusters = tuple(ProxyCluster(address=f"{n}") for n in range(5))
        self.known = Inventory(setup_keys=keys, proxy_clusters=clusters)
        found = self.look("peers")
        self.assertEqual({"critical": 5, "warning": 3000, "info": 0}, found.counts)
        severities = [finding.severity for finding in found.findings]
        self.assertEqual(5 * ["critical"] + 3000 * ["warning"], severities)

    def test_memory(self) -> None:
        """A finding takes less than a kilobyte: docs/operations.md says so."""
        number = 3000
        routes = tuple(
            Route(id=f"{n}", network_id=f"office {n}", network=f"10.{n}", enabled=True)
            for n in range(number)
        )
        self.known = Inventory(peers=(), groups=(), routes=routes)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        before, _ = tracemalloc.get_traced_memory()
        self.assertEqual(number, len(self.look("peers").findings))
        after, _ = tracemalloc.get_traced_memory()
        self.assertLess(after - before, 600 * number)

    def test_pauses(self) -> None:
        """While it looks there are places to pause, more where there is much."""
        few = sum(1 for _ in self.attention.look("peers"))
        self.known = Inventory(setup_keys=(replace(KEY, expires=at(-DAY)),) * 500)
        self.assertEqual(500, sum(1 for _ in self.attention.look("peers")) - few)

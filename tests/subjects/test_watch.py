"""When an account's findings are updated, and how many are kept."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Lifetime, default_thresholds, with_changes
from api_exporter.netbird.inventory import Inventory, Reading
from api_exporter.netbird.records import Group, Member, Peer, User
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.subjects import watch
from api_exporter.subjects.agent_network.resources import AgentProvider, AgentSettings
from api_exporter.subjects.policies import Policy, PostureCheck
from api_exporter.subjects.reverse_proxy import ProxyCluster
from api_exporter.subjects.routes import Route
from api_exporter.subjects.setup_keys import SetupKey
from api_exporter.subjects.watch import FindingList, update_findings
from tests.attention.looking import DAY, NOW, FindingsKeeper, at
from tests.inventories import inventory_of

READ = ResourceState(interval=30, ended_at=NOW, last_success=NOW)

WAITING = inventory_of().replacing("users", (User(id="u", pending_approval=True),))

KEY = SetupKey(id="k", type="reusable", expires=at(2 * DAY), last_used=at(0))


class AttentionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.known = inventory_of()
        self.time = NOW
        self.lives: tuple[Lifetime | None, Lifetime | None] = (None, None)
        self.states = {"peers": READ}
        self.attention = self.keeper(certificate_lifetimes=lambda: self.lives)

    def keeper(self, **options: Any) -> FindingsKeeper:
        return FindingsKeeper(
            lambda: self.known,
            states=self.states,
            now=lambda: self.time,
            clock=lambda: self.time,
            **options,
        )

    def test_thresholds(self) -> None:
        """An operator's own thresholds replace the shipped ones."""
        severe = with_changes(
            b'{"severities": {"NetBirdUserAwaitsApproval": "critical"}}'
        )
        usual = default_thresholds()
        for thresholds, severity in ((usual, "info"), (severe, "critical")):
            self.known = WAITING
            attention = self.keeper(thresholds=thresholds)
            found = update_findings(attention.snapshot(), "users", attention.last).found
            self.assertEqual(1, found.counts[severity])

    def look(self, resource: str) -> FindingList:
        attention = self.attention
        attention.last = update_findings(attention.snapshot(), resource, attention.last)
        return attention.found

    def test_start(self) -> None:
        """Before anything is known, there are no counts, not even zeros."""
        self.states["peers"] = ResourceState(interval=30)
        self.assertEqual({}, self.attention.found.counts)
        self.assertEqual({}, self.look("users").counts)
        self.states["peers"] = READ
        self.assertEqual(
            {"critical": 0, "warning": 0, "info": 0}, self.look("peers").counts
        )

    def test_unchanged(self) -> None:
        """A refresh without a change computes no finding."""
        self.known = WAITING.replacing("setup_keys", (KEY,))
        self.look("users")
        before = self.attention.last.by_finder
        self.assertEqual(1, self.look("users").counts["info"])
        [found] = [finder for finder, some in before.items() if some]
        self.assertIs(before[found], self.attention.last.by_finder[found])

    def test_drop_once(self) -> None:
        """A drop is only computed if the peers were refreshed or have changed."""
        looked: list[int] = []

        def drop_at(peers: Sequence[Peer], *_: object) -> None:
            looked.append(len(peers))

        self.patch(watch, "drop_at", drop_at)
        self.known = inventory_of(groups=()).replacing("peers", (Peer(id="p"),))
        for resource, count in (("peers", 1), ("groups", 1), ("peers", 2)):
            self.look(resource)
            self.assertEqual(count, len(looked), resource)
        self.known = self.known.replacing("peers", ())
        for _ in range(2):
            self.look("groups")
            self.assertEqual(3, len(looked))

    def test_drop_beside(self) -> None:
        """An update after another resource finds a drop of newer peers, and its end."""
        there = tuple(Peer(id=f"{n}", connected=True) for n in range(15))
        lost = tuple(
            replace(peer, connected=False, last_seen=at(-60)) for peer in there[:10]
        )

        def drops() -> list[str]:
            found = self.attention.found.findings
            return [f.alert for f in found if f.alert == "NetBirdFleetDropped"]

        self.known = inventory_of(peers=there, groups=(), users=())
        self.look("peers")
        self.known = self.known.replacing("peers", (*lost, *there[10:])).replacing(
            "users", None
        )
        self.look("users")  # the peers were read at the same time
        self.assertEqual(["NetBirdFleetDropped"], drops())
        self.known = self.known.replacing("peers", None)
        self.look("groups")
        self.assertEqual([], drops())
        self.known = self.known.replacing("peers", (*lost, *there[10:]))
        self.look("peers")
        self.assertEqual(["NetBirdFleetDropped"], drops())
        self.time += 2 * 3600
        self.look("peers")  # the same body, later
        self.assertEqual([], drops())

    def test_important_beside(self) -> None:
        """Numbers of important groups follow the peers after any refresh."""
        attention = self.keeper(important_groups=("gates",))
        gates = Group(id="g", name="gates", peers=(Member(id="a"), Member(id="b")))
        there = (Peer(id="a", connected=True), Peer(id="b", connected=True))
        self.known = inventory_of(users=(), policies=()).replacing("groups", (gates,))
        for resource, peers, numbers in (
            ("peers", there, (2, 2)),
            ("users", (replace(there[0], connected=False), there[1]), (2, 1)),
            ("policies", there[:1], (1, 1)),
        ):
            self.known = self.known.replacing("peers", peers)
            attention.last = update_findings(
                attention.snapshot(), resource, attention.last
            )
            [found] = attention.last.groups or ()
            self.assertEqual(numbers, (found.peers, found.connected), resource)
        self.known = self.known.replacing("groups", (replace(gates, peers=None),))
        attention.last = update_findings(attention.snapshot(), "users", attention.last)
        self.assertEqual([0], [found.peers for found in attention.last.groups or ()])

    def test_withdrawn(self) -> None:
        """A withdrawn resource has no findings, and counts as unknown."""
        self.known = WAITING
        self.states["users"] = READ
        self.look("users")
        self.known = self.known.replacing("users", None)
        found = self.look("users")
        self.assertEqual(((), ("peers", "users")), (found.findings, found.unknown))

    def test_last_provider(self) -> None:
        """A finding that needs a provider ends with the last provider."""
        kept = AgentSettings(enable_log_collection=True, enable_prompt_collection=True)
        self.known = self.known.replacing("agent_providers", (AgentProvider(id="a"),))
        self.known = self.known.replacing("agent_settings", (kept,))
        self.assertEqual(1, sum(self.look("agent_settings").counts.values()))
        self.known = self.known.replacing("agent_providers", ())
        self.assertEqual(0, sum(self.look("agent_providers").counts.values()))

    def test_time(self) -> None:
        """A finding that depends on time alone appears after a refresh of the peers."""
        self.known = inventory_of(setup_keys=(KEY,))
        self.assertEqual((), self.look("peers").findings)
        self.time += 2 * DAY
        self.assertEqual((), self.look("setup_keys").findings)
        self.assertEqual(1, self.look("peers").counts["warning"])

    def test_certificates(self) -> None:
        """Certificates belong to no resource: any refresh finds their expiry."""
        soon = Lifetime(None, NOW + DAY)
        self.lives = (soon, soon)
        self.assertEqual(2, self.look("groups").counts["warning"])
        self.lives = (Lifetime(None, NOW + 90 * DAY), None)
        self.assertEqual(0, self.look("groups").counts["warning"])

    def test_many(self) -> None:
        """All findings are kept, the most severe first."""
        keys = tuple(replace(KEY, id=f"{n}", expires=at(-DAY)) for n in range(3000))
        clusters = tuple(ProxyCluster(address=f"{n}") for n in range(5))
        self.known = inventory_of(setup_keys=keys, proxy_clusters=clusters)
        found = self.look("peers")
        self.assertEqual({"critical": 5, "warning": 3000, "info": 0}, found.counts)
        severities = [finding.severity for finding in found.findings]
        self.assertEqual(5 * ["critical"] + 3000 * ["warning"], severities)

    def test_series(self) -> None:
        """Fifty of a finding and 500 of all have series, the most severe first."""
        routes = tuple(
            Route(id=f"{n}", network_id=f"{n:03}", network=f"10.{n}", enabled=True)
            for n in range(60)
        )
        keys = tuple(replace(KEY, id=f"{n:03}", expires=at(-1)) for n in range(51))
        self.known = inventory_of(peers=(), groups=(), routes=routes, setup_keys=keys)
        found = self.look("peers")
        self.assertEqual(
            [("NetBirdRouteUnreachable", "critical", "route", "000|10.0", "10.0")],
            list(found.series)[:1],
        )
        names = Counter(name for name, *_ in found.series)
        self.assertEqual(
            {"NetBirdRouteUnreachable": 50, "NetBirdSetupKeyExpiresSoon": 50}, names
        )
        self.assertEqual(
            {"NetBirdRouteUnreachable": 10, "NetBirdSetupKeyExpiresSoon": 1},
            found.omitted,
        )
        self.patch(watch, "MAX_SERIES", 70)
        found = self.look("peers")
        self.assertEqual(70, len(found.series))
        self.assertEqual(31, found.omitted["NetBirdSetupKeyExpiresSoon"])

    def test_long_ids(self) -> None:
        """Findings whose labels are equal after cutting have one series, the latest."""
        ids, network = "abc", "n" * 4096
        peers = tuple(
            Peer(id=id_, last_seen=at(-seconds))
            for id_, seconds in zip(ids, (60, 30, 90), strict=True)
        )
        routes = tuple(
            Route(id=id_, network_id=network + id_, enabled=True, peer=id_)
            for id_ in ids
        )
        self.known = inventory_of(peers=peers, groups=(), routes=routes)
        found = self.look("peers")
        [((name, _, _, id_, _), since)] = found.series.items()
        self.assertEqual((network[3:] + "…", NOW - 30), (id_, since))
        self.assertEqual({name: 2}, found.omitted)

    def test_found_at(self) -> None:
        """A finding without a time has that at which it was first found."""

        def times() -> list[float]:
            return [at - NOW for at in self.look("users").series.values()]

        def waiting(*ids: str) -> Inventory:
            users = tuple(User(id=id_, pending_approval=True) for id_ in ids)
            return self.known.replacing("users", users)

        self.time += 60
        self.assertEqual([], times())  # unknown
        self.known = waiting("u")
        self.assertEqual([0], times())
        self.time += 60
        self.known = waiting("u", "v")
        self.assertEqual([0, 120], times())
        self.time += 60
        self.look("peers")
        self.assertEqual([0, 120], times())
        self.known = waiting("u")
        self.assertEqual([0], times())
        self.known = waiting("u", "v")
        self.assertEqual([0, 180], times())
        self.known = self.known.replacing("users", None)
        self.assertEqual([], times())
        self.known = waiting("u", "v", "w")
        self.assertEqual([0, 180, 0], times())
        self.known = inventory_of(setup_keys=(replace(KEY, expires=at(-DAY)),))
        self.look("peers")
        self.assertEqual([-DAY], times())  # its own time

    def test_brought_by(self) -> None:
        """A finding waits for no other reading of the list that has brought it."""
        check = PostureCheck(id="c")
        user = Policy(id="o", enabled=True, source_posture_checks=("c",))
        known = inventory_of(posture_checks=(check,), policies=(user,))
        self.known = known.read("posture_checks", Reading(0, 1)).read(
            "policies", Reading(0, 1)
        )
        self.look("peers")
        self.known = self.known.replacing("policies", ())
        self.known = self.known.read("policies", Reading(2, 4))
        self.known = self.known.read("posture_checks", Reading(3, 5))
        self.assertEqual(1, self.look("posture_checks").kept_back)
        [wait] = self.attention.last.waits.values()
        self.assertEqual(("posture_checks",), wait.lists)
        self.known = self.known.read("posture_checks", Reading(6, 7))
        self.assertEqual(0, self.look("posture_checks").kept_back)

    def test_memory(self) -> None:
        """A finding takes less than a kilobyte: docs/prometheus.md says so."""
        number = 3000
        routes = tuple(
            Route(id=f"{n}", network_id=f"office {n}", network=f"10.{n}", enabled=True)
            for n in range(number)
        )
        self.known = inventory_of(peers=(), groups=(), routes=routes)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        before, _ = tracemalloc.get_traced_memory()
        self.assertEqual(number, len(self.look("peers").findings))
        after, _ = tracemalloc.get_traced_memory()
        self.assertLess(after - before, 600 * number)

"""Findings of several lists are reported once they were found again."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.confirmation import MAX_WAIT
from api_exporter.attention.finding import FindingKey
from api_exporter.netbird.resources import OFF
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.settings import parsers
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES
from tests.administrator import WORLDS, Record, World, body
from tests.parts import account_settings, clocks_of, request_plan

PATHS = {resource.path: resource.name for resource in RESOURCES}
OTHERS = dict.fromkeys(RESOURCE_BY_NAME.keys() - WORLDS[0].keys(), OFF)
CREATED = WORLDS[16]
BROKEN = UpstreamError("http_5xx", "500")


class Working(AccountNetwork):
    """An exporter with its usual intervals, and the account of an administrator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[tuple[float, str]] = []
        self.told: set[FindingKey] = set()
        self.counts: list[Mapping[str, int]] = []
        self.odd: dict[str, Deferred[ResponseBody]] = {}
        self.clock = Clock()
        super().__init__(
            settings=account_settings(),
            fetch=self.fetch,
            plan=request_plan(parsers.collectors("default"), OTHERS),
            clocks=clocks_of(self.clock, lambda: 1_800_000_000 + self.clock.seconds()),
            registry=CollectorRegistry(),
        )
        self.startService()
        self.advance(60)

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        name = PATHS.get(path.partition("?")[0], "")
        self.sent.append((self.clock.seconds(), name))
        self.counts.append({**self.findings.found.counts})
        if name in self.odd:
            return self.odd[name]
        return succeed(ResponseBody(body(self.world, name)))

    def advance(self, seconds: float) -> None:
        """Advance the clock in steps of a second, and run all that is due."""
        for _ in range(round(seconds)):
            self.clock.advance(1.0)
            for _ in range(20):
                self.told |= self.now_told()
                self.counts.append({**self.findings.found.counts})
                self.clock.advance(0.0)

    def now_told(self) -> set[FindingKey]:
        return {finding.key for finding in self.findings.found.findings}

    def times(self, name: str, since: float = 0.0) -> list[float]:
        return [at for at, sent in self.sent if sent == name and at >= since]


def truth(world: World) -> set[FindingKey]:
    """Return the findings of an account in which nothing changes."""
    return Working(world).now_told()


TRUTH = [truth(world) for world in WORLDS]


def some(**lists: list[Record]) -> World:
    """Return an account with these lists alone."""
    return {name: lists.get(name, []) for name in WORLDS[0]} | {
        "accounts": WORLDS[0]["accounts"]
    }


def peer(id_: str, *, connected: bool = True) -> Record:
    seen = "2027-01-15T08:00:00Z" if connected else "2027-01-15T07:00:00Z"
    return {"id": id_, "name": id_, "connected": connected, "last_seen": seen}


class AdministratorTests(SynchronousTestCase):
    def follow(self, worlds: list[World], step: float) -> None:
        """Only findings that were true at some instant are reported, in the end all."""
        possible = set().union(*map(truth, worlds))
        working = Working(worlds[0])
        for world in worlds:
            working.world = world
            working.advance(step)
        working.advance(900)
        self.assertEqual(set(), working.told - possible)
        self.assertEqual(truth(worlds[-1]), working.now_told())

    def test_created(self) -> None:
        """Objects are created, one request every few seconds."""
        self.assertNotEqual(set(), set().union(*TRUTH))
        self.follow([*WORLDS], 9)

    def test_deleted(self) -> None:
        """Objects are deleted, one request every second."""
        self.follow([*reversed(WORLDS)], 1)


def routed(*, connected: bool) -> World:
    """Return an account with a network whose only routing peer is connected or not."""
    members = [{"id": "p", "name": "p"}]
    network = {"id": "n", "name": "office", "routers": ["r"], "resources": ["s"]}
    return some(
        peers=[peer("p", connected=connected), *map(peer, "abcdefgh")],
        groups=[{"id": "g", "name": "g", "peers": members, "peers_count": 1}],
        networks=[network],
        network_routers=[{"id": "r", "enabled": True, "peer_groups": ["g"]}],
        network_resources=[{"id": "s", "name": "s", "type": "host", "enabled": True}],
    )


class WaitTests(SynchronousTestCase):
    def seconds_until_told(self, working: Working) -> float:
        begin = working.clock.seconds()
        while not working.now_told() and working.clock.seconds() < begin + 600:
            working.advance(1)
        return working.clock.seconds() - begin

    def test_outage(self) -> None:
        """An outage is reported with the next reading of the peers and of the lists."""
        working = Working(routed(connected=True))
        working.advance(300)
        self.assertEqual(set(), working.told)
        working.world = routed(connected=False)
        self.assertLessEqual(self.seconds_until_told(working), 35)

    def test_failed(self) -> None:
        """A list whose request fails is not waited for."""
        working = Working(routed(connected=True))
        working.odd["groups"] = hung = Deferred[ResponseBody]()
        working.world = routed(connected=False)
        working.advance(40)
        self.assertEqual(set(), working.told)
        del working.odd["groups"]
        hung.errback(BROKEN)
        working.advance(1)
        self.assertNotEqual(set(), working.now_told())

    def test_bound(self) -> None:
        """No finding waits longer than three minutes for a list that hangs."""
        working = Working(routed(connected=True))
        working.odd["groups"] = Deferred()
        working.world = routed(connected=False)
        seconds = self.seconds_until_told(working)
        self.assertLess(MAX_WAIT - 1, seconds)
        self.assertLess(seconds, MAX_WAIT + 35)

    def test_gone(self) -> None:
        """A finding that does not hold any more ends at once, kept back or not."""
        working = Working(routed(connected=True))
        working.odd["groups"] = Deferred()
        working.world = routed(connected=False)
        working.advance(60)
        working.world = routed(connected=True)
        working.advance(400)
        self.assertEqual(set(), working.told)

    def test_start(self) -> None:
        """At a start the network is not known while something is kept back."""
        working = Working(routed(connected=False))
        self.assertEqual({}, working.counts[0])
        known = {counts.get("critical") for counts in working.counts}
        self.assertEqual({None, 1}, known)

    def test_one_list(self) -> None:
        """A finding of one list is reported at once."""
        waits = some(peers=[{**peer("p"), "approval_required": True}])
        working = Working(some(peers=[peer("p")]))
        working.world = waits
        working.advance(31)
        self.assertIn(("NetBirdPeerAwaitsApproval", "peer", "p"), working.now_told())


class TrafficTests(SynchronousTestCase):
    def test_enrolments(self) -> None:
        """Machines that enrol every half minute cause no early request."""
        working = Working(CREATED)
        begin = working.clock.seconds()
        for world in enrolling():
            working.world = world
            working.advance(30)
        times = working.times("groups", begin)
        self.assertLessEqual(len(times), 5)
        peers = working.times("peers", begin)
        self.assertEqual({30.0}, {other - one for one, other in pairwise(peers)})

    def test_nothing_changes(self) -> None:
        """An account without changes needs no extra request."""
        working = Working(CREATED)
        working.advance(3600)
        for name in ("groups", "networks", "network_routers", "routes"):
            self.assertLessEqual(len(working.times(name)), 14, name)
        self.assertLessEqual(len(working.times("policies")), 8)
        self.assertEqual(RESOURCE_BY_NAME["groups"].interval, 300)


def enrolling() -> Iterator[World]:
    everyone = CREATED["groups"][0]
    for number in range(40):
        coming = {"id": f"peer-{number}", "name": "ephemeral", "ephemeral": True}
        member = {"id": coming["id"], "name": coming["name"]}
        yield {
            **CREATED,
            "peers": [*CREATED["peers"], coming],
            "groups": [
                {**everyone, "peers": [*everyone["peers"], member]},
                *CREATED["groups"][1:],
            ],
        }

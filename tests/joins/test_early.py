"""Lists that joins wait for are refreshed early."""

from itertools import pairwise

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import OFF
from api_exporter.ports import ResponseBody
from api_exporter.refresh.network import AccountNetwork
from api_exporter.settings import parsers
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES
from api_exporter.world import World as AccountWorld
from tests.joins.administrator import WORLDS, World, body
from tests.joins.test_joined_lists import TRUTH, Page
from tests.parts import quota

PATHS = {resource.path: resource.name for resource in RESOURCES}
OTHERS = dict.fromkeys(RESOURCE_BY_NAME.keys() - WORLDS[0].keys(), OFF)
CREATED = WORLDS[16]


class Working(AccountNetwork):
    """An exporter with its usual intervals, and the account of an administrator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[tuple[float, str]] = []
        self.clock = Clock()
        super().__init__(
            fetch=self.fetch,
            quota=quota(parsers.collectors("default"), OTHERS),
            world=AccountWorld(
                self.clock, lambda: 1_800_000_000 + self.clock.seconds(), lambda: 0.5
            ),
            registry=CollectorRegistry(),
        )
        self.startService()
        self.advance(60)

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        name = PATHS.get(path.partition("?")[0], "")
        self.sent.append((self.clock.seconds(), name))
        return succeed(ResponseBody(body(self.world, name)))

    def advance(self, seconds: int) -> None:
        """Advance the clock in steps of a second, and run all that is due."""
        for _ in range(seconds):
            self.clock.pump([1.0, *[0.0] * 20])

    def times(self, name: str, since: float = 0.0) -> list[float]:
        return [at for at, sent in self.sent if sent == name and at >= since]

    def lines(self) -> frozenset[str]:
        return Page(self.inventory).lines


POSSIBLE = frozenset().union(*(truth.lines for truth in TRUTH))


class EarlyTests(SynchronousTestCase):
    def check(self, before: World, after: World) -> None:
        """All lines were true after some step, and soon the page is complete."""
        working = Working(before)
        self.assertEqual(frozenset(), working.lines() - POSSIBLE)
        working.world = after
        for _ in range(240):
            working.advance(5)
            self.assertEqual(frozenset(), working.lines() - POSSIBLE)
        self.assertEqual(Working(after).lines(), working.lines())

    def test_created(self) -> None:
        """Creation of objects never publishes a false line."""
        self.check(WORLDS[0], CREATED)

    def test_deleted(self) -> None:
        """Deletion of objects never publishes a false line."""
        self.check(CREATED, WORLDS[0])

    def test_early(self) -> None:
        """A router with a new group refreshes the groups at once."""
        working = Working(WORLDS[0])
        begin = working.clock.seconds()
        due = working.times("network_routers")[0] + 300
        working.advance(int(due - begin) - 10)
        working.world = CREATED
        working.advance(20)
        routers = working.times("network_routers", begin)[0]
        self.assertLess(working.times("groups", routers)[0] - routers, 2)

    def test_at_most_once_a_minute(self) -> None:
        """Other peers every half minute refresh groups once a minute, and no peers."""
        working = Working(CREATED)
        begin = working.clock.seconds()
        for number in range(40):
            coming = {"id": f"peer-{number}", "name": "ephemeral", "ephemeral": True}
            member = {"id": coming["id"], "name": coming["name"]}
            everyone = CREATED["groups"][0]
            peers = [*everyone["peers"], member]
            working.world = {
                **CREATED,
                "peers": [*CREATED["peers"], coming],
                "groups": [{**everyone, "peers": peers}, *CREATED["groups"][1:]],
            }
            working.advance(30)
        times = working.times("groups", begin)
        self.assertLessEqual(len(times), 20)
        for one, other in pairwise(times):
            self.assertLessEqual(30, other - one)
        peers = working.times("peers", begin)
        self.assertEqual({30.0}, {other - one for one, other in pairwise(peers)})

    def test_nothing_changes(self) -> None:
        """An account without changes needs no extra request."""
        working = Working(CREATED)
        working.advance(3600)
        for name in ("groups", "networks", "network_routers", "routes"):
            self.assertLessEqual(len(working.times(name)), 14, name)
        self.assertLessEqual(len(working.times("policies")), 8)
        self.assertEqual(RESOURCE_BY_NAME["groups"].period, 300)

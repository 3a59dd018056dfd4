"""Days of operation in seconds: the schedule against a limiter like NetBird's."""

from collections.abc import Mapping
from random import Random

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import RESOURCE_BY_NAME
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.settings import parsers
from api_exporter.world import World as AccountWorld
from simulation.company.network import SimulatedNetwork
from tests import THOROUGH, tries
from tests.bodies import body as made_up
from tests.parts import CURRENT_USER, quota
from tests.parts import limiter as bucket

HOUR = 3600
START = 1_800_000_000
PROVIDERS = RESOURCE_BY_NAME["agent_providers"].path
"""As most have none: what needs one is dormant. With them, the first reads of all are
more than this limiter's burst."""
STEP = 5
"""Seconds of time that pass at once."""


class World(AccountNetwork):
    """An exporter of the default collectors, an upstream with a limiter, and a clock.

    Attributes:
        oldest: the maximum age of the peers' metrics in seconds.
        gaps: how often the peers' families were not on the page.
        refused: requests that the limiter refused.
    """

    def __init__(self, intervals: Mapping[str, float]) -> None:
        self.clock = Clock()
        self.limiter = bucket(6, 30)
        self.network = SimulatedNetwork(20)
        self.refused = self.gaps = 0
        self.oldest = 0.0
        super().__init__(
            fetch=self.fetch,
            quota=quota(parsers.collectors("default"), intervals),
            world=AccountWorld(self.clock, self.now, Random(0).random),
            registry=CollectorRegistry(),
        )

    def now(self) -> float:
        return START + self.clock.seconds()

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        if self.limiter.take(self.now()):
            self.refused += 1
            return fail(UpstreamError("rate_limited", "429: too many requests"))
        if path == PROVIDERS:
            return succeed(ResponseBody(b"[]"))
        if path == CURRENT_USER:
            return succeed(ResponseBody(made_up("current_user")))
        body = self.network.body(f"/{path}", self.now())
        assert body is not None
        return succeed(ResponseBody(b"".join(body)))

    def run(self, seconds: int) -> None:
        self.startService()
        for _ in range(0, seconds, STEP):
            for _ in range(4):  # a response, its decoding, its rendering, the next
                self.clock.advance(0)
            self.look()
            self.clock.advance(STEP)

    def look(self) -> None:
        success = self.telemetry.freshness["peers"].last_success
        assert success is not None
        self.oldest = max(self.oldest, self.now() - success)
        pieces = self.pages.whole().pieces
        wanted = b"netbird_api_peer_connected{"
        self.gaps += not any(wanted in piece.text for piece in pieces)


class SimulationTests(SynchronousTestCase):
    def test_default_intervals(self) -> None:
        """For hours no request is refused and the peers are never a minute old.

        The thorough run and the schedule's tests cover two days.
        """
        world = World({})
        world.run((48 if THOROUGH else 4) * HOUR)
        self.assertEqual(0, world.refused)
        self.assertLess(world.oldest, 60)
        self.assertEqual(0, world.gaps)
        failures = [s.error for s in world.telemetry.freshness.values() if s.error]
        self.assertEqual([], failures)

    def test_greedy_intervals(self) -> None:
        """Peers every 5 s exceed the limit: few refusals, and no gaps."""
        hours = tries(16)
        world = World({"peers": 5})
        world.run(hours * HOUR)
        self.assertGreater(world.refused, 1)
        self.assertLess(world.refused, 2 * hours)
        self.assertEqual(0, world.gaps)
        self.assertLess(world.oldest, 60)
        self.assertIs(True, world.telemetry.freshness["groups"].up)

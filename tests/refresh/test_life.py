"""The life of a resource."""

from math import inf

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.refresh.life import FreshnessByName, lives
from api_exporter.refresh.refresh_log import RefreshLog
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.world import World


class ResourceLifeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.lives = lives({"peers": 30.0, "agent_usage": 600.0})
        self.freshness = FreshnessByName(self.lives)

    def test_sleep(self) -> None:
        """A dormant resource is not shown, never expires, and wakes as if new."""
        life = self.lives["agent_usage"]
        life.path, life.expires, life.window_ends, life.needless_logged = (
            "api/x",
            1.0,
            2.0,
            True,
        )
        life.sleep()
        self.assertEqual(["peers"], list(self.freshness))
        self.assertEqual(1, len(self.freshness))
        self.assertRaises(KeyError, lambda: self.freshness["agent_usage"])
        self.assertEqual(
            (None, inf, inf, False),
            (life.path, life.expires, life.window_ends, life.needless_logged),
        )
        life.wake()
        self.assertEqual(["peers", "agent_usage"], list(self.freshness))
        self.assertIsNone(self.freshness["agent_usage"].up)

    def test_with_period(self) -> None:
        """With another period the next refresh is due within it; a dormant resource
        stays dormant.
        """
        life = self.lives["peers"]
        self.assertIsNone(life.with_period(10.0, 0.0).due)
        life.due = 25.0
        for now, due in ((0.0, 10.0), (20.0, 25.0)):
            changed = life.with_period(10.0, now)
            self.assertEqual(
                (due, 10.0, 10.0),
                (changed.due, changed.period, changed.known_freshness.period),
            )
        life.sleep()
        self.assertIsNone(life.with_period(10.0, 0.0).freshness)

    def test_needed_while_dormant(self) -> None:
        """A resource that was withheld before it became dormant is requested again."""
        world = World(Clock(), lambda: 0.0, lambda: 0.5)
        telemetry = AccountTelemetry(
            registry=CollectorRegistry(), freshness=self.freshness
        )
        log = RefreshLog(lives=self.lives, telemetry=telemetry, world=world)
        log.restricted("agent_usage")
        self.lives["agent_usage"].sleep()
        log.needed("agent_usage")
        self.assertIsNone(self.lives["agent_usage"].freshness)

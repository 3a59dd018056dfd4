"""When an account's findings are looked for anew."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.watch import LIFE, Attention, Found
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import User
from api_exporter.telemetry.history import History
from api_exporter.telemetry.standing import Standing
from tests.attention.looking import NOW

WAITING = Inventory(users=(User(id="u", pending_approval=True),))


class AttentionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.known = Inventory()
        self.standings = {"peers": Standing(period=30)}
        self.attention = Attention(
            lambda: self.known, standings=self.standings, history=History(period=30)
        )

    def look(self, seconds: float = 0) -> Found:
        return self.attention(NOW + seconds)

    def test_start(self) -> None:
        """Before anything is known there are no counts: not even of nothing."""
        self.assertEqual({}, self.look().counts)
        self.standings["peers"] = Standing(period=30, ended=NOW, last_success=NOW)
        self.assertEqual({"critical": 0, "warning": 0, "info": 0}, self.look().counts)

    def test_changes(self) -> None:
        """They are looked for when records or a standing have been replaced."""
        first = self.look()
        self.assertIs(first, self.look(1))
        self.known = WAITING
        second = self.look(1)
        self.assertEqual(["info"], [one.severity for one in second.findings])
        self.standings["peers"] = replace(self.standings["peers"], ended=NOW)
        third = self.look(1)
        self.assertIsNot(second, third)
        self.assertEqual(1, third.counts["info"])
        self.assertIs(third, self.look(2))

    def test_time(self) -> None:
        """What only waits for its day is found within seconds, and a clock that was
        set back is no reason to wait.
        """
        first = self.look()
        self.assertIs(first, self.look(LIFE - 0.1))
        self.assertIsNot(first, self.look(LIFE))
        self.assertIsNot(self.look(), self.look(-3600))

"""Thresholds: their names, and what an operator's file may change."""

import json

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import default_thresholds, with_changes
from tools.prometheus import KINDS, ROOT

FILES = [
    *(ROOT / "api_exporter/subjects").rglob("*.py"),
    *(ROOT / "api_exporter/attention").glob("*.py"),
]


class ThresholdsTests(SynchronousTestCase):
    def test_severities(self) -> None:
        """Each finding has a severity, in the order of the findings."""
        names = list(dict.fromkeys(kind.name for kind in KINDS))
        self.assertEqual(names, list(default_thresholds().severities))

    def test_numbers(self) -> None:
        """Each number is used by a finder, or published for an alert."""
        source = "".join(path.read_text(encoding="utf-8") for path in FILES)
        for table in ("hours", "days", "shares", "peers", "dollars", "requests"):
            for name in getattr(default_thresholds(), table):
                self.assertIn(f'["{name}"]', source)

    def test_of_alerts(self) -> None:
        """The threshold of an alert has a series only if there is a limit."""
        self.assertEqual({"days.management_update": 14}, default_thresholds().of_alerts)
        own = with_changes(b'{"requests": {"logins_refused": 100}}')
        self.assertEqual(100, own.of_alerts["requests.logins_refused"])

    def test_mistakes(self) -> None:
        """A wrong value is refused in one line that names its place."""
        for table, name, value, expected in (
            ("days", "login_soon", 0, "days: login_soon: 0: Expected `int` >= 1"),
            ("days", "login_soon", 100_001, "100001: Expected `int` <= 100000"),
            ("days", "login_soon", 10_000_001, "login_soon: 10000001: Expected"),
            ("days", "login_soon", 100_000_001, "login_soon: Expected `int` <= 1"),
            ("days", "management_update", 101, "101: Expected `int` <= 100"),
            ("days", "login_soon", 1.5, "days: login_soon: 1.5: Expected `int`"),
            (
                "days",
                "login_son",
                1,
                "days: 'login_son' is not one of access_token_soon,",
            ),
            ("hours", "approval", "two", "hours: approval: 'two': Expected `int`"),
            (
                "shares",
                "addresses_used",
                1,
                "addresses_used: 1: Expected `float` < 1.0",
            ),
            ("dollars", "agent_month", 0, "agent_month: 0: Expected `float` > 0.0"),
            ("groups", "important", "servers", "groups: important: 'servers': Exp"),
            ("groups", "important", [1], "groups: important: [1]: Expected `str`"),
            ("groups", "routers", [""], "['']: Expected `str` of length >= 1"),
            ("groups", "importnat", [], "groups: 'importnat' is not one of important,"),
            ("severities", "NetBirdPolicyEmpty", "high", "PolicyEmpty: 'high': Inv"),
            (
                "severities",
                "ApiExporterDown",
                "info",
                "; an alert without a finding has its severity in the rules of"
                " Prometheus: change it there",
            ),
            ("runbooks", "url", "x", "'runbooks' is not one of groups, hours, days,"),
        ):
            text = json.dumps({table: {name: value}}).encode()
            error = self.assertRaises(ValueError, with_changes, text)
            self.assertIn(expected, str(error))
            self.assertNotIn("\n", str(error))
        for broken in (b"", b"[]", b'{"days": 1}', b"{", b"\xff", b"[" * 99_999):
            error = self.assertRaises(ValueError, with_changes, broken)
            self.assertNotIn("\n", str(error))

"""The rules are made from the thresholds, with or without an operator's own."""

import json
import re

import yaml
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.rules import TARGET, all_rules, rules
from api_exporter.attention.thresholds import default_thresholds, with_changes
from tests.prometheus import FILES, SOURCE

MATCHING = re.compile(r"\b(?:on|by) \(([^)]*)\)")


class RulesTests(SynchronousTestCase):
    maxDiff = None

    def made(self, name: str, runbooks: str | None = None, **own: object) -> str:
        """Return the rules of the shipped thresholds, with some replaced."""
        return rules(name, with_changes(json.dumps(own).encode()), runbooks)

    def test_fresh(self) -> None:
        """The committed rules are made from what is committed (`make rules`)."""
        for path, made in FILES.items():
            self.assertEqual(made().split("\n"), path.read_text().split("\n"), path)

    def test_numbers(self) -> None:
        """Each number appears in a rule."""
        sources = (SOURCE / "alerts.in.yml", SOURCE / "rules.in.yml")
        texts = "".join(path.read_text() for path in sources)
        for table in ("hours", "days", "shares", "peers"):
            for name in getattr(default_thresholds(), table):
                self.assertIn(f"@{{{table}.{name}}}", texts)

    def test_severities(self) -> None:
        """Each alert has a severity, in the order of the alerts."""
        alerts = re.findall(r"- alert: (\w+)", self.made("alerts"))
        self.assertEqual(list(default_thresholds().severities), alerts)

    def test_changed(self) -> None:
        """A threshold that is not named keeps its default."""
        self.assertEqual(self.made("alerts"), rules("alerts", default_thresholds()))
        usual, own = self.made("alerts"), self.made("alerts", days={"login_soon": 23})
        changes = [
            pair
            for pair in zip(usual.split("\n"), own.split("\n"), strict=True)
            if len(set(pair)) > 1
        ]
        self.assertNotEqual([], changes)
        for before, after in changes:
            self.assertIn("23", after)
            self.assertEqual(before, after.replace("23", "1"))

    def test_mistakes(self) -> None:
        """A wrong value is refused in one line that names its place."""
        for table, name, value, expected in (
            ("days", "login_soon", 0, "days: login_soon: 0: Expected `int` >= 1"),
            ("days", "login_soon", 100_001, "100001: Expected `int` <= 100000"),
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
            ("severities", "ApiExporterDown", "high", "ApiExporterDown: 'high': Inv"),
            ("runbooks", "url", "x", "'runbooks' is not one of groups, hours, days,"),
        ):
            text = json.dumps({table: {name: value}}).encode()
            error = self.assertRaises(ValueError, with_changes, text)
            self.assertIn(expected, str(error))
            self.assertNotIn("\n", str(error))
        for broken in (b"", b"[]", b'{"days": 1}', b"{", b"\xff", b"[" * 99_999):
            error = self.assertRaises(ValueError, with_changes, broken)
            self.assertNotIn("\n", str(error))

    def test_groups(self) -> None:
        """Each important group is one rule, with any characters in its name."""
        names = ["db", 'ops "1": {x}', "€ 🚀", "a\\\x7f\x85\n'"]
        groups = {"important": [*names, "db"], "routers": ["db"]}
        text = self.made("rules", groups=groups)
        # Prometheus accepts no surrogate pairs, but Python's reader does.
        self.assertNotRegex(text, r"\\ud[89a-f]")
        rules = yaml.safe_load(text)["groups"][1]["rules"]
        self.assertEqual(
            [*((name, "important") for name in names), ("db", "routers")],
            [(rule["labels"]["group"], rule["labels"]["role"]) for rule in rules],
        )

    def test_runbooks(self) -> None:
        """Alerts link to their section of the named page, or of the exporter's own."""
        for named, address in (
            (None, "http://{{ $labels.instance }}/runbooks"),
            ("https://wiki.example/netbird", "https://wiki.example/netbird"),
        ):
            text = self.made("alerts", named)
            links = re.findall(r"runbook_url: (.+)", text)
            alerts = [
                f"{address}#{name.lower()}" for name in default_thresholds().severities
            ]
            self.assertEqual(alerts, links)

    def test_joined(self) -> None:
        """Both files' groups are joined in one file."""
        found = yaml.safe_load(all_rules(default_thresholds(), None))
        wanted = [yaml.safe_load(self.made(name)) for name in ("rules", "alerts")]
        self.assertEqual(
            {"groups": [group for file in wanted for group in file["groups"]]}, found
        )

    def test_targets(self) -> None:
        """Each join and each sum keeps targets apart.

        The only exceptions are alerts about a process and all its accounts.
        """
        texts = "".join(path.read_text() for path in FILES)
        found = MATCHING.findall(texts)
        self.assertGreater(len(found), 30)
        loose = [labels for labels in found if not labels.startswith(TARGET)]
        self.assertEqual(["cluster, instance"] * 4, loose)

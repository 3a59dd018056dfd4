"""The rules are what `make rules` makes of `api_exporter/thresholds.json`."""

import json
import re
from typing import Any

from msgspec import ValidationError
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import read
from tests.rules import FILES, RULES, TARGET, THRESHOLDS, rules

MATCHING = re.compile(r"\b(?:on|by) \(([^)]*)\)")


class RulesTests(SynchronousTestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.thresholds: dict[str, Any] = json.loads(THRESHOLDS.read_text())

    def made(self, name: str) -> str:
        """What becomes of the thresholds as they are now."""
        return rules(name, read(json.dumps(self.thresholds).encode()))

    def test_fresh(self) -> None:
        """The committed rules are made from what is committed (`make rules`)."""
        for path, made in FILES.items():
            self.assertEqual(made().split("\n"), path.read_text().split("\n"), path)

    def test_numbers(self) -> None:
        """Each number decides something."""
        sources = (RULES / "alerts.in.yml", RULES / "rules.in.yml")
        texts = "".join(path.read_text() for path in sources)
        for table in ("hours", "days", "shares", "peers"):
            for name in self.thresholds[table]:
                self.assertIn(f"@{{{table}.{name}}}", texts)

    def test_severities(self) -> None:
        """There is one for each alert, in the order of the alerts."""
        alerts = re.findall(r"- alert: (\w+)", self.made("alerts"))
        self.assertEqual(list(self.thresholds["severities"]), alerts)

    def test_severity_missing(self) -> None:
        """An alert without a severity is a mistake."""
        self.thresholds["severities"].pop("ApiExporterDown")
        with self.assertRaises(KeyError):
            self.made("alerts")

    def test_mistakes(self) -> None:
        """What cannot be meant is refused in a line that says where it stands."""
        for table, name, value, told in (
            ("days", "login_soon", 0, "$.days"),
            ("days", "login_soon", 1.5, "$.days"),
            ("hours", "approval", "two", "$.hours"),
            ("shares", "addresses_used", 90, "$.shares"),
            ("groups", "important", "servers", "$.groups.important"),
            ("groups", "importnat", [], "importnat"),
            ("severities", "ApiExporterDown", "high", "high"),
        ):
            self.setUp()
            self.thresholds[table][name] = value
            error = self.assertRaises(ValidationError, self.made, "alerts")
            self.assertIn(told, str(error))
            self.assertNotIn("\n", str(error))

    def test_groups(self) -> None:
        """Each group that matters is one rule, whatever its name holds."""
        name = 'ops "1": {x}'
        self.thresholds["groups"] = {"important": ["db", name], "routers": []}
        text = self.made("rules")
        found = re.findall(r"labels: \{group: (.*), role: (\w+)\}", text)
        wanted = [("db", "important"), (name, "important")]
        self.assertEqual(wanted, [(json.loads(group), role) for group, role in found])

    def test_runbooks(self) -> None:
        """Where the runbooks are is said once."""
        self.thresholds["runbooks"] = "https://wiki.example/netbird"
        text = self.made("alerts")
        links = re.findall(r"runbook_url: (\S+)", text)
        self.assertEqual(len(self.thresholds["severities"]), len(links))
        for link in links:
            self.assertTrue(link.startswith("https://wiki.example/netbird#"), link)

    def test_targets(self) -> None:
        """Each join and each sum keeps apart what is of different targets.

        The one exception is what a process says of itself, for all its accounts.
        """
        texts = "".join(path.read_text() for path in FILES)
        found = MATCHING.findall(texts)
        self.assertGreater(len(found), 30)
        loose = [labels for labels in found if not labels.startswith(TARGET)]
        self.assertEqual(["cluster, instance"] * 2, loose)

"""The alerts: those of findings are made from their kinds, few others are by hand."""

import re

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tools.prometheus import ALERTS, EXPORTER_RUNBOOKS, KINDS, MARK, ROOT, RULES, alerts

TARGET = "cluster, account, job, instance"
"""The labels that identify a target. Several accounts of one exporter share `instance`.
A missing label changes nothing."""

MATCHING = re.compile(r"\b(?:on|by) \(([^)]*)\)")

OF_ONE_LIST = {
    "netbird_api_up",
    "netbird_api_management_update_available",
    "netbird_api_proxy_service_enabled",
}
"""The only metrics of the network that alerts read: none of them joins lists."""


class AlertTests(SynchronousTestCase):
    maxDiff = None

    def test_fresh(self) -> None:
        """The committed alerts are made from the kinds of findings (`make rules`)."""
        written = ALERTS.read_text(encoding="utf-8")
        self.assertEqual(alerts().split("\n"), written.split("\n"))

    def test_findings(self) -> None:
        """Each finding with an alert has one rule, which outlasts a restart."""
        made = yaml.safe_load(ALERTS.read_text())["groups"][-1]["rules"]
        names = dict.fromkeys(kind.name for kind in KINDS if kind.lasts)
        self.assertEqual(list(names), [rule["alert"] for rule in made])
        for rule in made:
            self.assertNotIn("labels", rule)
            self.assertRegex(rule["keep_firing_for"], r"^([5-9]|\d\d)m$")

    def test_by_hand(self) -> None:
        """The other alerts have a severity, and read no family of several lists."""
        text = ALERTS.read_text().partition(MARK)[0]
        rules = [r for group in yaml.safe_load(text)["groups"] for r in group["rules"]]
        self.assertEqual(16, len(rules))
        for rule in rules:
            self.assertIn(rule["labels"]["severity"], {"critical", "warning", "info"})
        self.assertEqual(OF_ONE_LIST, set(re.findall(r"netbird_api_\w+", text)))

    def test_runbooks(self) -> None:
        """Each alert has all annotations, and a section in the runbooks."""
        text = (ROOT / "docs/runbooks.md").read_text()
        sections = dict(re.findall(r"(?m)^## (\w+)\n((?:(?!## ).*\n)*)", text))
        groups = yaml.safe_load(ALERTS.read_text())["groups"]
        rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
        self.assertEqual(set(rules), set(sections))
        for name, rule in rules.items():
            self.assertIn("for", rule)
            notes = rule["annotations"]
            self.assertEqual({"summary", "description", "runbook_url"}, set(notes))
            link = f"{EXPORTER_RUNBOOKS}#{name.lower()}"
            self.assertEqual(link, notes["runbook_url"])
            for part in ("Meaning", "Do"):
                self.assertIn(f"* **{part}:** ", sections[name], name)
            if re.search("systemctl|journalctl", sections[name]):
                self.assertIn("kubectl", sections[name], name)

    def test_targets(self) -> None:
        """Joins and sums keep targets apart, except in alerts about a process."""
        texts = "".join(path.read_text() for path in (ALERTS, RULES))
        found = MATCHING.findall(texts)
        self.assertGreater(len(found), 15)
        loose = [labels for labels in found if not labels.startswith(TARGET)]
        self.assertEqual(["cluster, account", *["cluster, instance"] * 4], loose)

"""Alerts on several lists, and the reason why each of them is safe."""

import re

import yaml
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.rules import rules
from api_exporter.attention.thresholds import default_thresholds
from api_exporter.subjects.table import COLLECTORS
from tests.joins.administrator import WORLDS
from tests.joins.test_joined_lists import JOINED_FAMILIES, NEEDS

BOTH = {"NetBirdImportantLoginExpired": "a member and its login must both be there"}
"""Alerts that match series of two lists, and do not fire for a missing series."""

AS_ONE = {
    "ApiExporterTokenExpiresSoon": "tokens are read for the current user alone",
    "ApiExporterTokenExpiresVerySoon": "the same",
    "NetBirdLoginExpiresSoon": "the account's setting holds for every peer",
}
"""Alerts on lists that name no ids of each other."""


class AlertTests(SynchronousTestCase):
    def test_safe(self) -> None:
        """Each alert on several lists uses joined families, which wait."""
        groups = yaml.safe_load(rules("alerts", default_thresholds()))["groups"]
        seen = set()
        for rule in (rule for group in groups for rule in group["rules"]):
            names = set(re.findall(r"netbird_api_\w+", rule["expr"])) & NEEDS.keys()
            lists = {name for family in names for name in NEEDS[family]}
            if len(lists) < 2 or rule["alert"] in BOTH | AS_ONE:
                continue
            seen.add(rule["alert"])
            self.assertTrue(names & JOINED_FAMILIES, rule["alert"])
            self.assertLessEqual(lists, WORLDS[0].keys(), rule["alert"])
        self.assertIn("NetBirdNetworkUnreachable", seen)
        self.assertIn("NetBirdAgentReferenceMissing", seen)

    def test_families(self) -> None:
        """All joined families are published by some collector."""
        published = {family.name for c in COLLECTORS for family in c.families}
        self.assertLessEqual(JOINED_FAMILIES, published)

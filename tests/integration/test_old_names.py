"""The names of another exporter, from our recording rules in a real Prometheus."""

from pathlib import Path

from twisted.trial.unittest import TestCase

from tests.deploy.programs import DEPLOY, Exporter
from tests.incumbent import LABELS, PREFIX, WITHOUT_RULE
from tests.integration.programs import program, until
from tests.integration.promql import Prometheus
from tests.migrating import alerts, pairs

RULES = DEPLOY / "prometheus/netbird-api-exporter.rules.yml"

CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
- job_name: api-exporter
  static_configs: [{{targets: ["127.0.0.1:{port}"], labels: {{account: acme}}}}]
"""


class OldNamesTests(TestCase):
    timeout = 120

    def test_rules(self) -> None:
        """The rules give each old name its data, and queries the same values."""
        program("prometheus")
        exporter = Exporter(
            self,
            COLLECTORS="default,memberships",
            EXPOSE_PERSONAL_DATA="true",
            DEMO_PEERS="60",
            REFRESH_INTERVALS="peers=1h",  # so that all collectors tell of one moment
        )
        text = CONFIGURATION.format(port=exporter.port, rules=RULES)
        self.prometheus = Prometheus(self, Path(self.mktemp()), text)
        self.query, self.values = self.prometheus.samples, self.prometheus.values
        last = f"{PREFIX}routes_scrape_errors_total"
        until(lambda: self.query(f"count_over_time({last}[1m]) >= 3") != [], "rules")
        self.assert_labels()
        self.assert_migration()

    def assert_labels(self) -> None:
        """Each name has data, by each of its labels, and no other labels but the
        target's; no other of the old names has any.
        """
        of_target = {"__name__", "account", "instance", "job"}
        for name, words in LABELS.items():
            found = self.query(f"{PREFIX}{name}")
            self.assertNotEqual([], found, name)
            expected = {*of_target, *words.split()}
            for sample in found:  # where a label is empty, there is none
                self.assertLessEqual(set(sample["metric"]), expected, name)
                self.assertEqual("acme", sample["metric"]["account"])
            for label in {*words.split()} - {"description"}:
                by_label = f'count by ({label}) ({PREFIX}{name}{{{label}!=""}}) > 0'
                self.assertNotEqual([], self.query(by_label), by_label)
        scraped = self.query(f'count by (__name__) ({{__name__=~"{PREFIX}.*"}})')
        theirs = {sample["metric"]["__name__"] for sample in scraped}
        self.assertEqual(
            {f"{PREFIX}{name}" for name in LABELS},
            {name for name in theirs if not name.startswith("netbird_api_")},
        )
        self.assertFalse(WITHOUT_RULE & LABELS.keys())

    def assert_migration(self) -> None:
        """Documented replacements of queries have the same values, and alerts work."""
        for pair in pairs():
            if pair.same:
                theirs = self.values(pair.theirs)
                self.assertNotEqual([], theirs, pair.theirs)
                self.assertEqual(theirs, self.values(pair.ours), pair.theirs)
            elif pair.ours:
                self.assertNotEqual([], self.query(pair.ours), pair.ours)
        for expression in alerts():
            self.query(expression)

"""A real Prometheus that scraped the demo with `drop_in` is asked for the old names."""

from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase

from tests.collectors.incumbent import LABELS, OF_SCRAPES, PREFIX
from tests.deploy.programs import Exporter
from tests.integration.programs import (
    environment,
    free_port,
    program,
    start,
    until,
)
from tests.integration.promql import samples
from tests.migrating import alerts, pairs

CONFIGURATION = """
global: {{scrape_interval: 2s, scrape_timeout: 2s}}
scrape_configs:
- job_name: api-exporter
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


class DropInTests(TestCase):
    timeout = 120

    def setUp(self) -> None:
        prometheus = program("prometheus")
        exporter = Exporter(
            self,
            COLLECTORS="default,memberships,drop_in",
            EXPOSE_PERSONAL_DATA="true",
            DEMO_PEERS="60",
            REFRESH_INTERVALS="peers=1h",  # so that all collectors tell of one moment
        )
        directory = Path(self.mktemp())
        directory.mkdir()
        configuration = directory / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(port=exporter.port))
        self.port = free_port()
        start(
            self,
            [
                prometheus,
                f"--config.file={configuration.name}",
                "--storage.tsdb.path=tsdb",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            directory,
            environment(),
        )
        until(lambda: self.query("sum_over_time(up[1m]) >= 3") != [], "good rounds")

    def query(self, expression: str) -> list[Any]:
        """The samples of an instant vector."""
        return samples(self.port, expression)

    def values(self, expression: str) -> list[float]:
        return sorted(float(sample["value"][1]) for sample in self.query(expression))

    def test_labels(self) -> None:
        """Each name has data, by each of its labels, and no other labels; no other of
        the old names has any.
        """
        of_scrapes = {
            name + ("" if labels else part): labels
            for name, labels in OF_SCRAPES.items()
            for part in ("_count", "_sum")
        }
        buckets = {f"{name}_bucket" for name, of in OF_SCRAPES.items() if not of}
        for name, words in {**LABELS, **of_scrapes}.items():
            samples = self.query(f"{PREFIX}{name}")
            self.assertNotEqual([], samples, name)
            expected = {"__name__", "instance", "job", *words.split()}
            for sample in samples:  # where a label is empty, there is none
                self.assertLessEqual(set(sample["metric"]), expected, name)
            for label in words.split():
                by_label = f'count by ({label}) ({PREFIX}{name}{{{label}!=""}}) > 0'
                for sample in (found := self.query(by_label)):
                    self.assertEqual([label], list(sample["metric"]), name)
                self.assertNotEqual([], found, by_label)

        scraped = self.query(f'count by (__name__) ({{__name__=~"{PREFIX}.*"}})')
        theirs = {sample["metric"]["__name__"] for sample in scraped}
        self.assertEqual(
            {f"{PREFIX}{name}" for name in {*LABELS, *of_scrapes, *buckets}},
            {name for name in theirs if not name.startswith("netbird_api_")},
        )

    def test_migration(self) -> None:
        """What the documentation puts in the place of a query has the same values, and
        the alerts that it proposes can be evaluated.
        """
        for pair in pairs():
            if pair.same:
                theirs = self.values(pair.theirs)
                self.assertNotEqual([], theirs, pair.theirs)
                self.assertEqual(theirs, self.values(pair.ours), pair.theirs)
            elif pair.ours:
                self.assertNotEqual([], self.query(pair.ours), pair.ours)
        for expression in alerts():
            self.query(expression)

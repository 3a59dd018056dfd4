"""A real Prometheus scrapes the demo."""

import json
import sys
from pathlib import Path

from twisted.trial.unittest import TestCase

from tests.deploy.prometheus import needs
from tests.integration.programs import (
    ALL_READ,
    becomes,
    environment,
    free_port,
    get,
    program,
    scraped,
    start,
    until,
)
from tests.integration.promql import samples

CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: api-exporter
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""

PROTOCOLS = (
    "PrometheusProto",
    "PrometheusText0.0.4",
    "PrometheusText1.0.0",
    "OpenMetricsText0.0.1",
    "OpenMetricsText1.0.0",
    "OpenMetricsText2.0.0",
)
"""All that Prometheus 3.15 and newer can ask for; the first list is what it asks for by
itself. We have neither the first of them nor the last, and answer with what we have."""

PROTOCOL_JOB = """
- job_name: "{name}"
  scrape_protocols: [{protocols}]
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


class PrometheusTests(TestCase):
    timeout = 120

    def setUp(self) -> None:
        program("prometheus")
        self.directory = Path(self.mktemp())
        (self.directory / "exporter").mkdir(parents=True)
        self.port, self.prometheus = free_port(), free_port()
        start(
            self,
            [sys.executable, "-m", "api_exporter", "--demo"],
            self.directory / "exporter",
            environment(LISTEN_ADDRESS=f"127.0.0.1:{self.port}", DEMO_PEERS="100"),
        )
        until(lambda: scraped(self.url(), ALL_READ), "the first round")

    def started(self) -> None:
        """Prometheus as it is, with one job."""
        self.scrape(CONFIGURATION.format(port=self.port))

    def scrape(self, configuration: str) -> None:
        """Start Prometheus."""
        (self.directory / "prometheus.yml").write_text(configuration)
        start(
            self,
            [
                program("prometheus"),
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=tsdb",
                f"--web.listen-address=127.0.0.1:{self.prometheus}",
            ],
            self.directory,
        )

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def query(self, expression: str) -> list[float]:
        """The values of an instant vector."""
        found = samples(self.prometheus, expression)
        return [float(sample["value"][1]) for sample in found]

    def test_scraped(self) -> None:
        """Three rounds are scraped without an error, and every sample arrives."""
        self.started()
        rounds = 'sum_over_time(up{job="api-exporter"}[1m])'
        until(lambda: max(self.query(rounds), default=0) >= 3, "three good rounds")
        _, _, page = get(self.url())
        samples = [x for x in page.decode().splitlines() if not x.startswith("#")]
        [scraped_samples] = self.query("max_over_time(scrape_samples_scraped[1m])")
        self.assertLess(abs(len(samples) - scraped_samples), 60)
        until(lambda: self.query("sum(netbird_api_peers) > 80") != [], "the peers")
        # One query, as peers come and go between two.
        both = "count(netbird_api_peer_info) - sum(netbird_api_peers)"
        becomes([0.0], lambda: self.query(both))

    def test_join(self) -> None:
        """The join that the documentation promises gives one row a peer."""
        self.started()
        join = (
            "count(netbird_api_peer_connected * on (instance, peer_id)"
            " group_left (os, version) netbird_api_peer_info)"
        )
        becomes([0.0], lambda: self.query(f"{join} - sum(netbird_api_peers)"))

    def test_units(self) -> None:
        """Prometheus knows the units of the network's and the exporter's metrics."""
        self.started()
        until(lambda: bool(self.query("netbird_api_up")), "the first scrape")
        url = f"http://127.0.0.1:{self.prometheus}/api/v1/metadata?metric="
        for name, unit in (
            ("netbird_api_peer_last_seen_timestamp_seconds", "seconds"),
            ("api_exporter_reactor_lag_seconds", "seconds"),
            ("api_exporter_page_bytes", "bytes"),
            ("netbird_api_peers", ""),
        ):
            _, _, body = get(f"{url}{name}")
            [known] = json.loads(body)["data"][name]
            self.assertEqual(unit, known["unit"], name)

    def test_protocols(self) -> None:
        """In each format that Prometheus requests, it gets every sample."""
        needs("prometheus", "3.15.0")
        jobs = {
            "all": ", ".join(PROTOCOLS),
            **dict(zip(PROTOCOLS, PROTOCOLS, strict=True)),
        }
        text = CONFIGURATION.format(port=self.port) + "".join(
            PROTOCOL_JOB.format(name=name, protocols=protocols, port=self.port)
            for name, protocols in jobs.items()
        )
        self.scrape(text)
        good = "sum_over_time(up[1m]) >= 3 and min_over_time(up[1m]) == 1"
        becomes(len(jobs) + 1, lambda: len(self.query(good)))
        # The peers that come and go between two scrapes are not counted.
        lasting = "count by (job) (netbird_api_group_info)"
        becomes(len(jobs) + 1, lambda: len(self.query(lasting)))
        self.assertEqual(1, len(set(self.query(lasting))))

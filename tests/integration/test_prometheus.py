"""A real Prometheus scrapes the demo."""

import json

from tests.deploy.prometheus import needs
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import becomes, until
from tests.integration.promql import SECOND, Prometheus

JOB = """
- job_name: "{name}"
  {protocols}
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


class PrometheusTests(ExporterTestCase):
    def scraping(self, **jobs: str) -> Prometheus:
        """Start a Prometheus with a job for each setting of protocols."""
        self.started(environ=self.settings(DEMO_PEERS="100"))
        text = "".join(
            JOB.format(name=name, protocols=protocols, port=self.port)
            for name, protocols in jobs.items()
        )
        return Prometheus(self, self.directory, f"{SECOND}scrape_configs:{text}")

    def test_scraped(self) -> None:
        """Every sample arrives, with its unit, and the documented join has one row for
        each peer.
        """
        prometheus = self.scraping(exporter="")
        query = prometheus.values
        scrapes = "sum_over_time(up[1m])"
        until(lambda: max(query(scrapes), default=0) >= 3, "three good scrapes")
        samples = [x for x in self.page().splitlines() if not x.startswith("#")]
        [scraped_samples] = query("max_over_time(scrape_samples_scraped[1m])")
        self.assertLess(abs(len(samples) - scraped_samples), 60)
        until(lambda: query("sum(netbird_api_peers) > 80") != [], "the peers")
        join = (
            "count(netbird_api_peer_connected * on (instance, peer_id)"
            " group_left (os, version) netbird_api_peer_info)"
        )
        # One query, as peers come and go between two.
        for counted in ("count(netbird_api_peer_info)", join):
            both = f"{counted} - sum(netbird_api_peers)"
            becomes([0.0], lambda both=both: query(both))  # type: ignore[misc]
        for name, unit in (
            ("netbird_api_peer_last_seen_timestamp_seconds", "seconds"),
            ("api_exporter_page_bytes", "bytes"),
            ("netbird_api_peers", ""),
        ):
            _, text = prometheus.get(f"/api/v1/metadata?metric={name}")
            [known] = json.loads(text)["data"][name]
            self.assertEqual(unit, known["unit"], name)

    def test_protocols(self) -> None:
        """In each format that Prometheus requests, it gets every sample."""
        needs("prometheus", "3.15.0")
        jobs = {name: f"scrape_protocols: [{name}]" for name in PROTOCOLS}
        jobs["all"] = f"scrape_protocols: [{', '.join(PROTOCOLS)}]"
        query = self.scraping(exporter="", **jobs).values
        good = "sum_over_time(up[1m]) >= 3 and min_over_time(up[1m]) == 1"
        becomes(len(jobs) + 1, lambda: len(query(good)))
        # The peers that come and go between two scrapes are not counted.
        lasting = "count by (job) (netbird_api_group_info)"
        becomes(len(jobs) + 1, lambda: len(query(lasting)))
        self.assertEqual(1, len(set(query(lasting))))

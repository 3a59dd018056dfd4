"""A real Prometheus scrapes the demo in each format."""

from tests.deploy.prometheus import needs
from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import becomes
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
    def test_protocols(self) -> None:
        """In each format that Prometheus requests, it gets every sample."""
        needs("prometheus", "3.15.0")
        self.started(environ=self.settings(DEMO_PEERS="100"))
        jobs = {name: f"scrape_protocols: [{name}]" for name in PROTOCOLS}
        jobs |= {"all": f"scrape_protocols: [{', '.join(PROTOCOLS)}]", "exporter": ""}
        text = "".join(
            JOB.format(name=name, protocols=protocols, port=self.port)
            for name, protocols in jobs.items()
        )
        text = f"{SECOND}scrape_configs:{text}"
        query = Prometheus(self, self.directory, text).values
        good = "sum_over_time(up[1m]) >= 3 and min_over_time(up[1m]) == 1"
        becomes(len(jobs), lambda: len(query(good)))
        # The peers that come and go between two scrapes are not counted.
        lasting = "count by (job) (netbird_api_group_info)"
        becomes(len(jobs), lambda: len(query(lasting)))
        self.assertEqual(1, len(set(query(lasting))))

"""Less detail than there is: the real daemon, and a real Prometheus with two jobs."""

from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import becomes, until
from tests.integration.promql import SECOND, Prometheus

CONFIGURATION = """
scrape_configs:
- job_name: peers
  params: {{"collect[]": [peers, groups], "exclude[]": [exporter]}}
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
- job_name: others
  params: {{"exclude[]": [peers, groups]}}
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
- job_name: wrong
  params: {{"collect[]": [pears]}}
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""

SETTINGS = {
    "PEER_DETAIL": "groups:servers,nowhere",
    "METRICS_DENY": "netbird_api_user*,netbird_api_access_token_*,"
    "netbird_api_identity_provider*,netbird_api_agent_*",
    "COLLECTORS": "default,memberships",
    "REFRESH_INTERVALS": "peers=1s",
}


class DetailTests(ExporterTestCase):
    def test_prometheus(self) -> None:
        """Two jobs scrape a part each; a job with a wrong part gets an error."""
        self.started(environ=self.settings(DEMO_PEERS="100", **SETTINGS))
        jobs = CONFIGURATION.format(port=self.port)
        samples = Prometheus(self, self.directory, f"{SECOND}{jobs}").samples

        def query(expression: str) -> dict[str, float]:
            """Values by job."""
            found = samples(expression)
            return {r["metric"]["job"]: float(r["value"][1]) for r in found}

        good = "sum_over_time(up[1m]) >= bool 3"
        becomes({"peers": 1, "others": 1, "wrong": 0}, lambda: query(good))
        self.assertEqual(0, query("max_over_time(up[1m])")["wrong"])
        for job, expression in (
            ("peers", "sum by (job) (netbird_api_peers)"),
            ("others", "sum by (job) (netbird_api_networks)"),
            ("others", "api_exporter_page_bytes"),
        ):
            becomes({job}, lambda asked=expression: set(query(asked)))  # type: ignore[misc]
        listed = 'sum(api_exporter_series{collector=~"peers|groups"})'
        off = f'abs({listed} - on () scrape_samples_scraped{{job="peers"}}) < 5'
        until(lambda: samples(off) != [], "as many samples as series")

"""Rules and dashboards with several accounts in one exporter."""

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import blocks, new_folder
from tests.deploy.prometheus import Prometheus
from tests.deploy.queries import mark_queries, panel_queries
from tests.integration.programs import (
    becomes,
    environment,
    free_port,
    get,
    program,
    start,
    until,
)

RULES = "rule_files: [rules.yml, alerts.yml]\n"

HASTE = "global: {scrape_interval: 30s, evaluation_interval: 30s}\n"

READ = 'api_exporter_resource_up{resource="network_resources"} == 1'


DROPPED = 'api_exporter_finding_since_timestamp_seconds{finding="NetBirdFleetDropped"}'


class AccountsTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Four accounts, two of them with a dead token, and the documented jobs."""
        port = free_port()
        settings = {"DEMO_ACCOUNTS": "4", "COLLECTORS": "default,memberships"}
        env = environment(LISTEN_ADDRESS=f"127.0.0.1:{port}", **settings)
        start(self, [program("api-exporter"), "--demo"], new_folder(self), env)
        url = f"http://127.0.0.1:{port}/sd/accounts"
        until(lambda: get(url)[0] == 200, "the accounts")
        found = blocks("accounts.md", "yaml", "Prometheus")
        [jobs] = [block for block in found if block.startswith("scrape_configs:")]
        jobs = jobs.replace("exporter.example:8080", f"127.0.0.1:{port}")
        self.prometheus = Prometheus(self, HASTE + RULES + jobs)

    def test_kept_apart(self) -> None:
        """Each account has its own alerts, and a failed account only one."""
        query = self.prometheus.samples
        until(lambda: len(query(READ)) == 2, "two accounts that can be read")
        alive = {sample["metric"]["account"] for sample in query(READ)}
        until(lambda: len(query("netbird_api_up == 0")) == 2, "two that cannot")
        dead = {s["metric"]["account"] for s in query("netbird_api_up == 0")}
        self.assertEqual(set(), alive & dead)

        def accounts(name: str) -> set[str]:
            return {
                alert["labels"]["account"]
                for alert in self.prometheus.alerts()
                if alert["labels"]["alertname"] == name
            }

        def told() -> set[str]:
            """Return accounts whose fleet has not dropped, as it does every week."""
            fallen = query(DROPPED)
            return alive - {sample["metric"]["account"] for sample in fallen}

        until(lambda: accounts("NetBirdNetworkUnreachable") == told(), "alerts")
        # The alert counts failures after the first.
        until(lambda: accounts("ApiExporterUpstreamFailing") == dead, "failures", 180)
        until(lambda: accounts("NetBirdResourceUnreachable") == told(), "more of them")
        ratio = "instance:netbird_api_peers_connected:ratio"
        becomes(alive, lambda: {s["metric"]["account"] for s in query(ratio)})
        becomes({("ok", None)}, self.prometheus.health)
        for _, asked in (*panel_queries(), *mark_queries()):
            query(asked)

"""Rules, alerts and dashboards, by promtool and a Prometheus that scrapes the demo."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.rules import EXPORTER_RUNBOOKS, RULE_FILES, all_rules
from api_exporter.attention.rules import rules as made
from api_exporter.attention.thresholds import default_thresholds, with_changes
from api_exporter.telemetry.access_log import AccessLogTelemetry
from tests.deploy.programs import DEPLOY, Exporter, blocks, documents, new_folder, run
from tests.deploy.prometheus import FILES, Prometheus
from tests.deploy.queries import (
    mark_queries,
    panel_queries,
    rules,
    selectors,
    variable_queries,
)
from tests.events.paging import START, row
from tests.integration.programs import (
    ROOT,
    becomes,
    free_port,
    get,
    program,
    start,
    until,
)

MONITORING = DEPLOY / "monitoring"

TESTS = (FILES / "alerts_test.yml", FILES / "alerts_slow_test.yml")

OLD_NAMES = FILES / "netbird-api-exporter.rules.yml"
"""Rules that generate the metrics of another exporter."""

OFF = Path(__file__).with_name("alerts_off_test.yml")
"""The tests of alerts that the shipped thresholds turn off."""

ON = b"""{
    "dollars": {"agent_month": 8},
    "requests": {"logins_refused": 50},
    "settings": {"local_mfa_enabled": true}
}"""
"""Thresholds that turn these alerts on."""

QUIET = {
    "exporter: Failed refreshes",
    "exporter: Management server updated",
    "network: Management server updated",
    "network: Setting changed",
    "peer: Management server updated",
    "proxy: Management server updated",
}
"""Panels that are empty as long as nothing fails or changes."""

ELSEWHERE = {
    "api_exporter_audit_events_missed_total",
    "api_exporter_audit_events_writable",
    "api_exporter_token_readable",
    "api_exporter_upstream_certificate_expiration_timestamp_seconds",
    "api_exporter_client_certificate_expiration_timestamp_seconds",
    "api_exporter_web_config_last_reload_successful",
    "instance_group:netbird_api_group_matters:info",
    'instance_group:netbird_api_group_matters:info{role="important"}',
    'instance_group:netbird_api_group_matters:info{role="routers"}',
    "instance_setting:netbird_api_account_setting_wanted:bool",
}
"""Metrics that the demo does not have: its token has no file, and it has neither TLS,
authentication nor audit log. The shipped thresholds name no group and no setting."""

SHOWN = {
    "NetBirdNetworkUnreachable",
    "NetBirdPeerAwaitsApproval",
    "NetBirdPeersOutdated",
    "NetBirdPolicyEmpty",
    "NetBirdPostureCheckUnused",
    "NetBirdResourceUnreachable",
    "NetBirdUserAwaitsApproval",
}
"""Alerts that always fire in the demo. The others need a failure, an expiry or weeks:
promtool tests them."""

DROPPED = "instance:netbird_api_fleet_dropped:bool"

NEIGHBOURS = """\
# TYPE management_grpc_connected_streams_ratio gauge
management_grpc_connected_streams_ratio 200
# TYPE netbird_management_connected gauge
netbird_management_connected{{peer_id="{peer_id}"}} 0
netbird_signal_connected{{peer_id="{peer_id}"}} 1
netbird_peers_connected{{peer_id="{peer_id}",connection_type="p2p"}} 2
netbird_peers_connected{{peer_id="{peer_id}",connection_type="relayed"}} 1
relay_peers_active 3
relay_transfer_sent_bytes_total 1e6
relay_transfer_received_bytes_total 1e6
active_peers 200
proxy_domains_count_ratio 3
proxy_http_request_counter_total 7
proxy_tcp_active_connections_ratio{{account_id="{account_id}"}} 2
# TYPE netbird_peer_latency_seconds gauge
netbird_peer_latency_seconds{{peer="{dns_label}"}} 0.02
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e9
"""
"""Some metrics of NetBird's servers and of a client."""

NEIGHBOURS_JOB = """\
  - job_name: netbird
    metrics_path: /metrics.txt
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


class PromtoolTests(SynchronousTestCase):
    def test_accepted(self) -> None:
        """Promtool accepts rules and scrape configurations, those of documents and of
        an OpenTelemetry Collector included.
        """
        folder = new_folder(self)
        one, collector, socket = (folder / f"{n}.yml" for n in ("one", "otel", "unix"))
        one.write_text(all_rules(default_thresholds(), "https://wiki.example/netbird"))
        [received] = documents(MONITORING / "collector.yml")
        config = json.dumps(received["receivers"]["prometheus"]["config"])
        collector.write_text(config.replace("$$", "$"))
        [block] = blocks("unix-socket.md", "yaml")
        socket.write_text(block)
        rule_files = [FILES / "rules.yml", FILES / "alerts.yml", OLD_NAMES, one]
        for kind, files in (
            ("rules", [*rule_files, MONITORING / "rules.yml"]),
            ("config", [*MONITORING.glob("[ps]*.yml"), collector, socket]),
        ):
            run(program("promtool"), "check", kind, *files)
        said = run(program("promtool"), "check", "config", FILES / "prometheus.yml")
        self.assertIn("2 rule files found", said)

    def test_alerts(self) -> None:
        """Promtool's tests pass: alerts fire when they should, and not before."""
        old_names = OLD_NAMES.with_stem(f"{OLD_NAMES.stem}_test")
        run(program("promtool"), "test", "rules", TESTS[0], old_names)

    def test_alerts_slow(self) -> None:
        """The same holds for alerts that need hours or days."""
        run(program("promtool"), "test", "rules", *TESTS[1:])

    def test_alerts_off(self) -> None:
        """Alerts that are off by default fire with an operator's thresholds."""
        folder = new_folder(self)
        for name in RULE_FILES:
            (folder / f"{name}.yml").write_text(made(name, with_changes(ON)))
        tests = folder / OFF.name
        tests.write_text(OFF.read_text())
        run(program("promtool"), "test", "rules", tests)

    def test_alerts_tested(self) -> None:
        """Each alert fires in one test, and in another one nothing does."""
        files = [file for path in (*TESTS, OFF) for file in documents(path)]
        fired: Counter[str] = Counter()
        for test in (test for file in files for test in file["tests"]):
            for case in test["promql_expr_test"]:
                for sample in case["exp_samples"]:
                    fired.update(re.findall(r'alertname="(\w+)"', sample["labels"]))
            self.assertIn([], [c["exp_samples"] for c in test["promql_expr_test"]])
        self.assertEqual({rule["alert"] for rule in rules("alerts.yml")}, set(fired))


class RunbookTests(SynchronousTestCase):
    def test_sections(self) -> None:
        """Each alert has all annotations, and a section for its link. A section with
        commands for systemd has commands for Kubernetes, too.
        """
        text = (ROOT / "docs/runbooks.md").read_text()
        sections = dict(
            re.findall(r"^## (\w+)\n((?:(?!## ).*\n)*)", text, re.MULTILINE)
        )
        alerts = {rule["alert"]: rule for rule in rules("alerts.yml")}
        self.assertEqual(list(alerts), list(sections))
        for name, alert in alerts.items():
            self.assertIn(alert["labels"]["severity"], {"critical", "warning", "info"})
            self.assertIn("for", alert)
            notes = alert["annotations"]
            self.assertEqual({"summary", "description", "runbook_url"}, set(notes))
            link = notes["runbook_url"]
            self.assertEqual(f"{EXPORTER_RUNBOOKS}#{name.lower()}", link)
            for part in ("Meaning", "Impact", "Check", "Do", "Ends when"):
                self.assertIn(f"* **{part}:** ", sections[name], name)
            if re.search("systemctl|journalctl", sections[name]):
                self.assertIn("kubectl", sections[name], name)


class PrometheusTests(SynchronousTestCase):
    """A Prometheus with our configuration, except for address and intervals."""

    def setUp(self) -> None:
        program("prometheus")
        exporter = Exporter(self, COLLECTORS="default,memberships,events")
        text = (FILES / "prometheus.yml").read_text()
        self.prometheus = Prometheus(
            self,
            text.replace("api-exporter:8080", exporter.url[7:])
            + NEIGHBOURS_JOB.format(port=self.neighbours(exporter.page)),
        )
        self.query = self.prometheus.samples
        twice = "count_over_time(instance:api_exporter_reactor_lag_seconds:p99_5m[1m])"
        until(lambda: self.query(f"{twice} > 1") != [], "rates of rates")
        becomes(2, lambda: len(self.query('up{job=~"api-exporter|netbird"} == 1')))

    def neighbours(self, page: str) -> int:
        """Serve the metrics of NetBird's servers, a client, and an account whose access
        log has requests of each kind. Return the port.
        """
        [peer_id, *_] = re.findall(r'peer_connected{peer_id="(\w+)".*} 1\b', page)
        info = rf'peer_info{{peer_id="{peer_id}".*dns_label="([^"]+)"'
        [dns_label] = re.findall(info, page)
        [account_id] = re.findall(r'account_info{account_id="(\w+)"', page)
        registry = CollectorRegistry()
        access_log = AccessLogTelemetry(registry, writes=True)
        access_log.set_services({"a": "web"})
        for status in (200, 401, 502):
            request = row(1, START, service_id="a", status_code=status)
            access_log.count_rows([json.dumps(request).encode()], 0)
        text = NEIGHBOURS.format(
            peer_id=peer_id, dns_label=dns_label, account_id=account_id
        )
        directory = new_folder(self)
        text += generate_latest(registry).decode()
        (directory / "metrics.txt").write_text(text)
        port = free_port()
        address = ("--bind", "127.0.0.1", str(port))
        start(self, [sys.executable, "-m", "http.server", *address], directory)
        until(lambda: get(f"http://127.0.0.1:{port}/metrics.txt")[0] == 200, "them")
        return port

    def test_data(self) -> None:
        """Every selector, panel, annotation, variable and example has data. Expressions
        of alerts are mostly empty, as they should be. Rules and texts have no errors.
        """
        sources = [*panel_queries()]
        for file in ("rules.yml", "alerts.yml"):
            sources += [(file, rule["expr"]) for rule in rules(file)]
        names = {name for _, expression in sources for name in selectors(expression)}
        self.assertGreater(len(names), 60)
        becomes(ELSEWHERE, lambda: {name for name in names if not self.query(name)})
        examples = blocks("which-metrics.md", "promql")
        self.assertEqual(4, len(examples))
        asked = [*panel_queries(), *mark_queries(), *variable_queries()]
        asked += [("which-metrics.md", query) for query in examples]
        # A rate needs a counter with some history.
        becomes(
            QUIET,
            lambda: (
                {who for who, what in asked if not self.query(what)}
                | {"exporter: Failed refreshes"}
            ),
        )
        expressions = {rule["alert"]: rule["expr"] for rule in rules("alerts.yml")}
        becomes(set(), lambda: self.missing(expressions))
        records = [rule["record"] for rule in rules("rules.yml")]
        self.assertEqual([], [name for name in records if not self.query(name)])
        alerts = self.prometheus.alerts
        until(lambda: len(alerts()) >= 5, "alerts that the demo gives reason for")
        for alert in alerts():
            for text in alert["annotations"].values():
                self.assertNotRegex(text, r"<|error|no value|^$|  ", alert)
        becomes({("ok", None)}, self.prometheus.health)

    def missing(self, alerts: dict[str, str]) -> set[str]:
        """Return expected alerts without data. Many are silent when the fleet drops."""
        dropped = self.query(f"{DROPPED} == 1")
        expected = {
            name for name in SHOWN if not dropped or DROPPED not in alerts[name]
        }
        return {name for name in expected if not self.query(alerts[name])}

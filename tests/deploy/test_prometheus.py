"""Rules, alerts and dashboards, by promtool and a Prometheus that scrapes the demo."""

import json
import re
import sys
from collections import Counter

from prometheus_client import CollectorRegistry, generate_latest
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import SEVERITIES, default_thresholds
from api_exporter.telemetry.logs import AccessLogTelemetry
from tests.deploy.programs import DEPLOY, Exporter, blocks, documents, new_folder, run
from tests.deploy.prometheus import FILES, Prometheus
from tests.deploy.queries import (
    mark_queries,
    panel_queries,
    rules,
    selectors,
    variable_queries,
)
from tests.integration.programs import becomes, free_port, get, program, start, until
from tests.logs.paging import START, row
from tests.migrating import alerts as replaced
from tests.subjects.test_demo import STANDING
from tools.prometheus import KINDS

MONITORING = DEPLOY / "monitoring"

TESTS = (FILES / "alerts_test.yml", FILES / "alerts_slow_test.yml")

OLD_NAMES = FILES / "netbird-api-exporter.rules.yml"
"""Rules that generate the metrics of another exporter."""

QUIET = {"Management server updated", "Setting changed"}
"""Marks of what happens in no demo."""

HEALTHY = {"exporter: Failures in 10 minutes, by reason", "exporter: Requests a minute"}
"""Panels with a query that is empty as long as nothing fails or no limit is known."""

ELSEWHERE = {
    "api_exporter_account_up",
    "api_exporter_audit_events_missed_created",
    "api_exporter_audit_events_missed_total",
    "api_exporter_audit_events_writable",
    "api_exporter_findings_omitted",
    "api_exporter_request_budget_per_minute",
    "api_exporter_threshold",
    "api_exporter_token_readable",
    "api_exporter_web_config_last_reload_successful",
    "up",
}
"""Metrics that the demo does not have: its only account has no name (`up`), and no
token file. It has neither TLS, authentication nor audit log, and knows no limit of
requests. The shipped thresholds limit no refused logins."""


FINDING = "api_exporter_finding_since_timestamp_seconds"
"""A family that has only what is wrong."""

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
        """Promtool accepts all rules and scrape configurations, also of documents."""
        folder = new_folder(self)
        collector, socket = folder / "otel.yml", folder / "unix.yml"
        [received] = documents(MONITORING / "collector.yml")
        config = json.dumps(received["receivers"]["prometheus"]["config"])
        collector.write_text(config.replace("$$", "$"))
        [block] = blocks("security.md", "yaml", "No TCP port at all")
        socket.write_text(block)
        accounts = folder / "accounts.yml"
        found = blocks("accounts.md", "yaml", "Prometheus")
        [block] = [text for text in found if text.startswith("scrape_configs:")]
        accounts.write_text(block)
        rule_files = [FILES / "rules.yml", FILES / "alerts.yml", OLD_NAMES]
        for kind, files in (
            ("rules", [*rule_files, MONITORING / "rules.yml"]),
            ("config", [*MONITORING.glob("[ps]*.yml"), collector, socket, accounts]),
        ):
            run(program("promtool"), "check", kind, *files)
        said = run(program("promtool"), "check", "config", FILES / "prometheus.yml")
        self.assertIn("2 rule files found", said)

    def test_added_label(self) -> None:
        """The documented command keeps a label that a job adds in all old names."""
        [command] = blocks("migrating.md", "sh")
        folder = new_folder(self)
        rules = folder / OLD_NAMES.name
        rules.write_text(OLD_NAMES.read_text())
        run("sh", "-ec", f"cd {folder}; {command}")
        run(program("promtool"), "check", "rules", rules)
        series, kept = "netbird_api_peers", 'netbird_instance="eu"'
        test = {
            "rule_files": [str(rules)],
            "tests": [
                {
                    "input_series": [
                        {
                            "series": f'{series}{{connected="true",{kept}}}',
                            "values": "7",
                        }
                    ],
                    "promql_expr_test": [
                        {
                            "expr": f"netbird_peers{{{kept}}}",
                            "eval_time": "0m",
                            "exp_samples": [
                                {"labels": f"netbird_peers{{{kept}}}", "value": 7}
                            ],
                        }
                    ],
                }
            ],
        }
        (folder / "test.yml").write_text(json.dumps(test))
        run(program("promtool"), "test", "rules", folder / "test.yml")
        for line in rules.read_text().splitlines():
            self.assertEqual("cluster," in line, "netbird_instance," in line, line)

    def test_replaced_alerts(self) -> None:
        """No documented replacement of an alert fires for a list that is in time."""
        name, labels = "api_exporter_resource", '{resource="instance_version"}'
        series = {
            f"{name}_last_success_timestamp_seconds{labels}": "0x60",
            f"{name}_refresh_interval_seconds{labels}": "3600x60",
            f"{name}_up{labels}": "1x60",
        }
        test = {
            "interval": "1m",
            "input_series": [{"series": s, "values": v} for s, v in series.items()],
            "promql_expr_test": [
                {"expr": expr, "eval_time": "50m"} for expr in replaced()
            ],
        }
        file = new_folder(self) / "test.yml"
        file.write_text(json.dumps({"tests": [test]}))
        run(program("promtool"), "test", "rules", file)

    def test_alerts(self) -> None:
        """Promtool's tests pass: alerts fire when they should, and not before."""
        old_names = OLD_NAMES.with_stem(f"{OLD_NAMES.stem}_test")
        run(program("promtool"), "test", "rules", *TESTS, old_names)

    def test_alerts_tested(self) -> None:
        """Each alert by hand, and each shape of the others, fires in one test."""
        files = [file for path in TESTS for file in documents(path)]
        fired: Counter[str] = Counter()
        for test in (test for file in files for test in file["tests"]):
            for case in test["promql_expr_test"]:
                for sample in case["exp_samples"]:
                    fired.update(re.findall(r'alertname="(\w+)"', sample["labels"]))
        [*by_hand, of_findings] = documents(FILES / "alerts.yml")[0]["groups"]
        names = {rule["alert"] for group in by_hand for rule in group["rules"]}
        self.assertEqual(set(), names - set(fired))
        tested = {r["alert"] for r in of_findings["rules"]} & set(fired)
        usual = default_thresholds().severities
        self.assertEqual(set(SEVERITIES), {usual[name] for name in tested})
        shapes = {
            kind.name: (kind.object_type == "account", kind.own_labels)
            for kind in KINDS
            if kind.lasts
        }
        self.assertEqual(set(shapes.values()), {shapes[name] for name in tested})


class PrometheusTests(SynchronousTestCase):
    """A Prometheus with our configuration, except for address and intervals."""

    def setUp(self) -> None:
        program("prometheus")
        self.exporter = Exporter(
            self, COLLECTORS="default,memberships,events", EXPOSE_PERSONAL_DATA="true"
        )
        text = (FILES / "prometheus.yml").read_text()
        self.prometheus = Prometheus(
            self,
            text.replace("api-exporter:8080", f"127.0.0.1:{self.exporter.port}")
            + NEIGHBOURS_JOB.format(port=self.neighbours(self.exporter.page)),
        )
        self.query = self.prometheus.samples
        twice = "count_over_time(instance:api_exporter_reactor_lag_seconds:p99_5m[1m])"
        until(lambda: self.query(f"{twice} > 1") != [], "rates of rates")
        becomes(2, lambda: len(self.query('up{job=~"api-exporter|netbird"} == 1')))
        self.count_requests()  # so that their rates are not 0
        self.assert_scraped()

    def neighbours(self, page: str) -> int:
        """Serve the metrics of NetBird's servers, a client, and an account whose access
        log has requests of each kind. Return the port.
        """
        [peer_id, *_] = re.findall(r'peer_connected{peer_id="(\w+)".*} 1\b', page)
        info = rf'peer_info{{peer_id="{peer_id}".*dns_label="([^"]+)"'
        [dns_label] = re.findall(info, page)
        [account_id] = re.findall(r'account_info{account_id="(\w+)"', page)
        registry = CollectorRegistry()
        access_log = AccessLogTelemetry(registry, now=lambda: 7, writes=True)
        access_log.set_services({"a": "web"})
        directory = new_folder(self)

        def count_requests() -> None:
            """Count requests of each kind, and write all metrics."""
            for status in (200, 401, 502):
                request = row(1, START, service_id="a", status_code=status)
                access_log.count_recent_rows([json.dumps(request).encode()] * 100, 0)
            text = NEIGHBOURS.format(
                peer_id=peer_id, dns_label=dns_label, account_id=account_id
            )
            text += generate_latest(registry).decode()
            (directory / "metrics.txt").write_text(text)

        count_requests()
        self.count_requests = count_requests
        port = free_port()
        address = ("--bind", "127.0.0.1", str(port))
        start(self, [sys.executable, "-m", "http.server", *address], directory)
        until(lambda: get(f"http://127.0.0.1:{port}/metrics.txt")[0] == 200, "them")
        return port

    def assert_scraped(self) -> None:
        """Every sample arrives, with its unit, and the documented join has one row for
        each peer.
        """
        samples = [x for x in self.exporter.openmetrics.splitlines() if x[0] != "#"]
        scraped = 'max_over_time(scrape_samples_scraped{job="api-exporter"}[1m])'
        [found] = self.prometheus.values(scraped)
        self.assertLess(abs(len(samples) - found), 60)
        join = (
            "count(netbird_api_peer_connected * on (instance, peer_id)"
            " group_left (os, version) netbird_api_peer_info)"
        )
        # One query, as peers come and go between two.
        for counted in ("count(netbird_api_peer_info)", join):
            both = f"{counted} - sum(netbird_api_peers)"
            becomes([0.0], lambda both=both: self.prometheus.values(both))  # type: ignore[misc]
        for name, unit in (
            ("netbird_api_peer_last_seen_timestamp_seconds", "seconds"),
            ("api_exporter_page_bytes", "bytes"),
            ("netbird_api_peers", ""),
        ):
            _, text = self.prometheus.get(f"/api/v1/metadata?metric={name}")
            [known] = json.loads(text)["data"][name]
            self.assertEqual(unit, known["unit"], name)

    def test_data(self) -> None:
        """Every selector, panel, annotation and variable has data."""
        sources = [*panel_queries()]
        for file in ("rules.yml", "alerts.yml"):
            sources += [(file, rule["expr"]) for rule in rules(file)]
        names = {name for _, expression in sources for name in selectors(expression)}
        names = {name for name in names if FINDING not in name}
        self.assertGreater(len(names), 60)
        becomes(
            ELSEWHERE, lambda: {n.partition("{")[0] for n in names if not self.query(n)}
        )
        asked = [*panel_queries(), *mark_queries(), *variable_queries()]
        # A rate needs a counter with some history.
        becomes(
            set(),
            lambda: (
                {
                    who
                    for who, what in asked
                    if who.partition(": ")[2] not in QUIET and not self.query(what)
                }
                - HEALTHY
            ),
        )
        expressions = {rule["alert"]: rule["expr"] for rule in rules("alerts.yml")}
        shown = STANDING - {"NetBirdImportantPeerOffline"}  # the demo has no such group
        becomes(set(), lambda: {n for n in shown if not self.query(expressions[n])})
        records = [rule["record"] for rule in rules("rules.yml")]
        self.assertEqual([], [name for name in records if not self.query(name)])
        alerts = self.prometheus.alerts
        until(lambda: len(alerts()) >= 5, "alerts that the demo gives reason for")
        for alert in alerts():
            for text in alert["annotations"].values():
                self.assertNotRegex(text, r"<|no value|^$|  ", alert)
        becomes({("ok", None)}, self.prometheus.health)

"""Figures of documents that the code decides, measured."""

import json
import re
from itertools import product

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.refresh.request_plans import per_minute
from api_exporter.subjects import agent_network
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME
from api_exporter.telemetry.gauges import text
from api_exporter.telemetry.logs import AccessLogTelemetry
from tests.deploy.programs import Exporter
from tests.integration.programs import ROOT

FINDING = "api_exporter_finding_since_timestamp_seconds"

OF_SERVICE = "proxy_service_id="
"""A label of the series of a service."""


class FiguresTests(SynchronousTestCase):
    def document(self, path: str) -> str:
        return (ROOT / path).read_text(encoding="utf-8")

    def test_requests(self) -> None:
        """The requests a minute are those of the default intervals."""
        read = {name for each in COLLECTORS if each.default for name in each.reads}
        intervals = {
            name: RESOURCE_BY_NAME[name].interval for name in (*read, "current_user")
        }
        of_agents = {resource.name for resource in agent_network.SUBJECT.resources}
        agents = sum(60 / s for n, s in intervals.items() if n in of_agents)
        others = {n: s for n, s in intervals.items() if n not in of_agents}
        least = per_minute([others])
        text = " ".join(self.document("docs/connections.md").split())
        self.assertIn(
            f"The defaults make {least:.1f} requests a minute, and {least + agents:.1f}"
            " where the account has providers of the Agent Network. The access log adds"
            f" up to {60 / RESOURCE_BY_NAME[ACCESS_LOG].interval:.0f}.",
            text,
        )
        self.assertIn(
            f"sends {least:.1f} requests a minute", self.document("README.md")
        )

    def test_series(self) -> None:
        """The exporter's own metrics are fewer than the page says, but not by far."""
        found = " ".join(self.document("docs/prometheus.md").split())
        [(series, kilobytes, services)] = re.findall(
            r"Add (\d+) series and (\d+) kB .* service in the access log up to (\d+)",
            found,
        )
        page = Exporter(self, COLLECTORS="default,memberships,events").openmetrics
        own = [
            line
            for line in page.splitlines()
            if not re.match(rf"(# \w+ )?(netbird_api_|{FINDING})", line)
            and OF_SERVICE not in line
        ]
        counted = sum(line[0] != "#" for line in own)
        self.assertTrue(0.8 * int(series) < counted < int(series), counted)
        size = sum(len(line) + 1 for line in own) / 1e3
        self.assertTrue(0.7 * int(kilobytes) < size < int(kilobytes), size)
        self.assertEqual(int(services), self.series_of_service())

    def series_of_service(self) -> int:
        """Return the series of a service that had requests of all kinds."""
        registry = CollectorRegistry()
        telemetry = AccessLogTelemetry(registry, now=lambda: 7, writes=True)
        kinds = product(
            ("http", "tcp", "udp", "tls", "other"),
            (0, 100, 200, 300, 401, 500),
            (
                *("ip_restricted", "country_restricted", "geo_unavailable"),
                *("crowdsec_ban", ""),
            ),
        )
        rows = [
            {"service_id": "a", "protocol": p, "status_code": s, "auth_method_used": a}
            for p, s, a in kinds
        ]
        telemetry.count_recent_rows([json.dumps(row).encode() for row in rows], 0)
        page = text(registry, in_openmetrics=True).decode()
        return sum(OF_SERVICE in line for line in page.splitlines())

"""The tree of pages, and the small ones in it."""

import json

from prometheus_client import CollectorRegistry

from api_exporter.history import History
from api_exporter.inventory import Inventory
from api_exporter.pages import Pages
from api_exporter.ports import UpstreamError
from api_exporter.telemetry import Telemetry
from api_exporter.version import Build
from api_exporter.web import root
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.status import Status
from tests.web.served import ServedTestCase, header

URL = "https://netbird.example"


class PagesTests(ServedTestCase):
    def setUp(self) -> None:
        self.serve("/metrics")

    def serve(self, metrics_path: str) -> None:
        self.telemetry = Telemetry(
            registry=CollectorRegistry(),
            build=Build(version="0"),
            periods={"peers": 30.0, "groups": 300.0},
        )
        self.tree = root(
            status=Status(
                telemetry=self.telemetry,
                pages=Pages([]),
                history=History(period=30),
                inventory=Inventory,
                collectors=[],
                version="1.2.3",
                upstream_url=URL,
                metrics_path=metrics_path,
                pprof=False,
                uptime=lambda: 12.3456,
                now=lambda: 1000,
            ),
            health=Health(
                telemetry=self.telemetry,
                version="1.2.3",
                upstream_url=URL,
                uptime=lambda: 12.3456,
            ),
            ready=Ready(telemetry=self.telemetry, now=lambda: 1000),
            metrics=Metrics(
                pages=Pages(["peers"]), telemetry=self.telemetry, seconds=lambda: 0
            ),
            metrics_path=metrics_path,
        )

    def test_status(self) -> None:
        """The status page names the program and links to the others."""
        status, headers, body = self.request("/")
        self.assertEqual(200, status)
        self.assertEqual("text/html; charset=utf-8", header(headers, "content-type"))
        for text in ("api-exporter 1.2.3", 'href="metrics"', 'href="health"', URL):
            self.assertIn(text, body.decode())

    def test_metrics_path(self) -> None:
        """The metrics are where the setting says, and only there."""
        self.serve("/a/b/c")
        self.assertEqual(200, self.request("/a/b/c")[0])
        for path in ("/metrics", "/a", "/a/b", "/a/b/c/d", "/a/b/"):
            self.assertEqual(404, self.request(path)[0], path)

    def test_unknown(self) -> None:
        """What is not there is 404."""
        for path in ("/nothing", "/health/", "/health/x", "//", "/..", "/debug/pprof/"):
            self.assertEqual(404, self.request(path)[0], path)

    def test_health_at_the_start(self) -> None:
        """The process is healthy although nothing is known yet."""
        status, headers, body = self.request("/health")
        self.assertEqual(200, status)
        self.assertEqual("application/json", header(headers, "content-type"))
        self.assertEqual("no-store", header(headers, "cache-control"))
        unknown = {
            "up": None,
            "supported": None,
            "last_success_timestamp_seconds": None,
            "records": None,
            "last_error_reason": None,
        }
        self.assertEqual(
            {
                "status": "ok",
                "version": "1.2.3",
                "uptime_seconds": 12.346,
                "upstream": {"url": URL, "reachable": None},
                "resources": {"peers": unknown, "groups": unknown},
            },
            json.loads(body),
        )

    def test_health(self) -> None:
        """Every resource tells how its newest refresh went."""
        self.telemetry.succeeded("peers", records=0, rejected=0, seconds=1, at=1000.5)
        error = UpstreamError("forbidden", "403: permission denied")
        self.telemetry.failed("groups", error, seconds=1, at=1001)
        resources = json.loads(self.request("/health")[2])["resources"]
        self.assertEqual(
            (True, 0, 1000.5),
            tuple(
                resources["peers"][name]
                for name in ("up", "records", "last_success_timestamp_seconds")
            ),
        )
        self.assertEqual(
            (False, "forbidden"),
            tuple(resources["groups"][name] for name in ("up", "last_error_reason")),
        )

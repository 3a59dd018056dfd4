"""The tree of pages, and its smaller pages."""

import json

from api_exporter.ports import UpstreamError
from api_exporter.refresh.transitions import Failed
from tests.web.served import ServedTestCase
from tests.web.watched import URL, VERSION, Watched

UNKNOWN = {
    "up": None,
    "supported": None,
    "last_success_timestamp_seconds": None,
    "records": None,
    "last_error_reason": None,
}
"""A resource before its first refresh."""


class PagesTests(ServedTestCase):
    def setUp(self) -> None:
        self.serve("/metrics")

    def serve(self, metrics_path: str) -> None:
        watched = Watched(collectors=["peers", "groups"], metrics_path=metrics_path)
        self.watched = watched
        self.tree = watched.tree

    def test_every(self) -> None:
        """Every page has GET and HEAD, before and after the first refresh."""
        for watched in (self.watched, Watched().start()):
            self.tree = watched.tree
            for path in (
                *("/", "/findings", "/health", "/metrics", "/ready", "/runbooks"),
                *("/status.json", "/status.schema.json"),
                *("/sd", "/sd?port=1"),
            ):
                self.assert_page(path)

    def test_metrics_path(self) -> None:
        """The metrics are only at the path of the setting."""
        self.serve("/a/b/c")
        self.assertEqual(200, self.request("/a/b/c")[0])
        for path in ("/metrics", "/a", "/a/b", "/a/b/c/d", "/a/b/"):
            self.assertEqual(404, self.request(path)[0], path)

    def test_unknown(self) -> None:
        """Any other path lists the pages, and says why it is none of them."""
        for path, words in (
            ("/nothing", "There is no page '/nothing'."),
            ("/%1b[2J<b>", r"There is no page '/\x1b[2J<b>'."),
            ("/..", "'/..'"),
            ("/health/", "Write /health without a slash at its end."),
            ("/debug/pprof/", "It needs the option --enable-pprof."),
            ("/lookup", "It needs the setting LOOKUP=true."),
            ("/sd/accounts", "It needs several accounts (ACCOUNTS_DIR)."),
            ("/-/healthy", "Request /health."),
            ("/metrics/", "Write /metrics without"),
        ):
            status, headers, body = self.request(path)
            self.assertEqual(404, status, path)
            self.assertIn(words, body.decode())
            self.assertIn(" /health /metrics /ready ", body.decode())
            self.assert_headers(headers, content_type="text/plain; charset=utf-8")
        self.serve("/a/b/c")
        self.assertIn(b"METRICS_PATH is /a/b/c.", self.request("/metrics")[2])

    def test_health_at_the_start(self) -> None:
        """The process is healthy before the first refresh."""
        self.watched.clock.advance(12.3456)
        status, headers, body = self.request("/health")
        self.assertEqual(200, status)
        self.assert_headers(headers, content_type="application/json")
        names = ("peers", "current_user", "accounts", "groups")
        found = {
            "status": "ok",
            "version": VERSION,
            "uptime_seconds": 12.346,
            "upstream": {"url": URL, "reachable": None},
            "resources": dict.fromkeys(names, UNKNOWN),
        }
        self.assertEqual(json.dumps(found, indent=2) + "\n", body.decode())

    def test_health(self) -> None:
        """Every resource shows the result of its last refresh."""
        states = self.watched.states
        states.change("peers", ended_at=1000.5, last_success=1000.5)
        error = UpstreamError("forbidden", "403: permission denied")
        states.record("groups", Failed(error, 1, 1001))
        error = UpstreamError("forbidden", "403", request_id="dc1djo5qmd2oq13d8pj0")
        states.record("accounts", Failed(error, 1, 1001))
        resources = json.loads(self.request("/health")[2])["resources"]
        success: dict[str, object] = {"up": True, "supported": True, "records": 0}
        success["last_success_timestamp_seconds"] = 1000.5
        failure: dict[str, object] = {"up": False, "last_error_reason": "forbidden"}
        self.assertEqual(UNKNOWN | success, resources["peers"])
        self.assertEqual(UNKNOWN | failure, resources["groups"])
        failure["last_error_request_id"] = "dc1djo5qmd2oq13d8pj0"
        self.assertEqual(UNKNOWN | failure, resources["accounts"])

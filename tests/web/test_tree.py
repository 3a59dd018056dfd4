"""The tree of pages, and its smaller pages."""

from api_exporter.serving.site import BoundedSite
from tests.web.connection import Connection
from tests.web.served import ServedTestCase
from tests.web.watched import Watched


class TreeTests(ServedTestCase):
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

    def test_two_slashes(self) -> None:
        """The path is repeated as it was sent. Newer clients change it."""
        connection = Connection(BoundedSite(self.tree, self.watched.clock))
        connection.ask("//health")
        words = b"'//health'. Write /health without another slash."
        self.assertIn(words, connection.heard())

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
            ("/health/", "'/health/'. Write /health without another slash."),
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

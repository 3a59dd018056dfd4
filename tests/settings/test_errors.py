"""The values that errors repeat."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError, quote_value, unexpanded
from api_exporter.settings.setting import absolute_path

REQUIRED = {"UPSTREAM_API_URL": "https://api.example", "UPSTREAM_API_TOKEN": "x"}


class QuoteTests(SynchronousTestCase):
    def test_shown(self) -> None:
        """Short words, numbers, paths and addresses are repeated."""
        for text in (
            *("", "a b", "warnings", "-dns", "64MB", "64 MB", "0/3", "6/500", "1m30s"),
            *("8080", "10.0.0.1", "eth0:9999", "[::1]:8080", ":8080", "api.example"),
            *(
                "/run/secrets/token",
                "./a",
                "../a/b.yml",
                "~/token",
                "~me/token",
                "%d/x",
            ),
            *("${HOME}/token", "${TOKEN}", "$TOKEN", "$home/x", "file:///run/x"),
            *("unix:/run/http.sock", "https://api.example/api", "/" + "x" * 199),
        ):
            self.assertEqual(repr(text), quote_value(text))

    def test_masked(self) -> None:
        """User, password and query of an address are not repeated."""
        for text, shown in (
            ("https://me:canary@api.example/x", "'https://…@api.example/x'"),
            ("http://me:can/ary@a.example:80", "'http://…@a.example:80'"),
            ("https://a.example/x?token=canary", "'https://a.example/x?…'"),
            ("https://a.example#canary", "'https://a.example#…'"),
            ("nbp_canary", "'nbp_…'"),
        ):
            self.assertEqual(shown, quote_value(text))

    def test_hidden(self) -> None:
        """A value that may be a secret in the wrong variable is not repeated."""
        for text in (
            *("correcthorse", "hunter2", "passwords", "correct-horse", "a1b2c3d4"),
            *("eyJhbGci.e30.c2ln", "me:canary", "$2y$10$abcdef", "deadbeefdeadbeef"),
            *("correcthorse/./a", "Zm9vYmFyYmF6cXV4", "/" + "x" * 200, "canary\n/x"),
        ):
            self.assertEqual(f"a value of {len(text)} characters", quote_value(text))

    def test_relative(self) -> None:
        """A relative path is repeated with its folder, unless it may be a secret."""
        for given, shown in (
            ("token", "'/a/token'"),
            ("web.yml", "'/a/web.yml'"),
            ("certificates/netbird/ca.pem", "'/a/certificates/netbird/ca.pem'"),
            ("correcthorse", "a value of 12 characters"),
            ("a616cb1c-1a2b-4c3d-9e4f-5a6b7c8d9e0f", "a value of 36 characters"),
            ("eyJhbGciOiJSUzI1NiJ9/e30/c2ln", "a value of 29 characters"),
            ("nbp_canary", "'nbp_…'"),
        ):
            self.assertEqual(shown, quote_value(absolute_path("/a", given)))
        for path in ("", "-", "/b", "~/b", "$B/c"):
            self.assertEqual(path, absolute_path("/a", f" {path} "))
        self.assertEqual("b", absolute_path("", "b"))

    def test_known(self) -> None:
        """A misspelt name is repeated, however long."""
        known = ("agent_consumption", "netbird_api_peer_connected")
        for text in ("agent_consumtion", "NETBIRD_API_PEERS_CONNECTED"):
            self.assertEqual(repr(text), quote_value(text, known))
            self.assertNotEqual(repr(text), quote_value(text))
        self.assertNotIn("correct", quote_value("correcthorse", known))


class UnexpandedTests(SynchronousTestCase):
    def problem(self, **environ: str) -> str:
        error = self.assertRaises(ConfigurationError, read_settings, REQUIRED | environ)
        self.assertFalse(error.retryable)
        [problem] = error.problems
        return str(problem)

    def test_found(self) -> None:
        """The beginning that a shell or systemd replaces is named."""
        for text, found in (
            *(("%d/token", "%d"), ("~/x", "~"), ("~me/x", "~me"), ("$HOME/x", "$HOME")),
            *(("${A_1}", "${A_1}"), ("${A}/x", "${A}"), ("$TOKEN", "$TOKEN")),
        ):
            self.assertTrue(unexpanded(text).startswith(f"{found} is not expanded"))
        self.assertIn("leave out file:", unexpanded("file:///run/x"))
        for text in (
            "",
            "/a",
            "a/%d/x",
            "%zz",
            "100%",
            "$ecret",
            "$2y$10$a",
            "~",
            "a~/b",
        ):
            self.assertEqual("", unexpanded(text))

    def test_settings(self) -> None:
        """A path that must be expanded is refused; other errors say it as a hint."""
        for name in ("UPSTREAM_CA_FILE", "EVENTS_FILE", "WEB_CONFIG_FILE"):
            for text in ("~/x", "%d/x", "${X}/x", "file:///x"):
                problem = self.problem(**{name: text})
                self.assertIn(f"{name}: {text!r} is not allowed", problem)
                self.assertIn(unexpanded(text), problem)
        self.assertIn("${URL} is not", self.problem(UPSTREAM_API_URL="${URL}"))
        problem = self.problem(UPSTREAM_API_TOKEN="${TOKEN}")
        self.assertIn("its value is not allowed", problem)
        self.assertIn("${TOKEN} is not expanded here", problem)

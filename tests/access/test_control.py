"""Access control at the start, and the changes that a reload may make."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.control import MAX_USUAL_COST, AccessControl, load
from api_exporter.access.reloading import Reloader
from api_exporter.access.web_config import WebConfig
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError
from tests.access.folder import HASH, REQUIRED, SERVER, Folder, rsa_key
from tests.logbook import logbook

USERS = f'basic_auth_users:\n  alice: "{HASH}"\n'

VERIFIED = REQUIRED.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven")


def compare(_password: bytes, _digest: bytes) -> Deferred[bool]:
    raise AssertionError("nobody shows a password")


class AccessControlTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.folder = Folder(self, self.mktemp())
        self.book = logbook(self)

    def load(self, web: str | None = None, **settings: str) -> AccessControl | None:
        if web is not None:
            settings["WEB_CONFIG_FILE"] = str(self.folder.write(web))
        environ = {"UPSTREAM_API_URL": "https://x", "UPSTREAM_API_TOKEN": "x"}
        found = read_settings({**environ, **settings})
        return load(found, self.clock.seconds, lambda: 9, compare)

    def loaded(self, text: str) -> tuple[AccessControl, Reloader[WebConfig]]:
        """Return the access control and its web configuration."""
        access = self.load(text)
        assert access is not None
        assert access.web is not None
        return access, access.web

    def why_not(self, web: str | None = None, **settings: str) -> list[str]:
        raised = self.assertRaises(ConfigurationError, self.load, web, **settings)
        problems: list[str] = raised.problems
        return problems

    def test_nothing(self) -> None:
        """Without settings there is no access control."""
        self.assertIs(None, self.load())
        self.assertIs(None, self.load(WEB_OPEN_PATHS="/metrics"))

    def test_all_at_once(self) -> None:
        """The errors of all files are reported at once, each with its setting."""
        problems = self.why_not(
            "x: 1\n", WEB_BEARER_TOKENS_FILE="/none", WEB_OPEN_PATHS="/debug/pprof"
        )
        for problem, start in zip(
            problems,
            (
                f"WEB_CONFIG_FILE: {self.folder.file}: the file: no such key: 'x'",
                "WEB_BEARER_TOKENS_FILE: /none: No such file or directory",
                "WEB_OPEN_PATHS: '/debug/pprof' is not allowed: it must be /metrics",
            ),
            strict=True,
        ):
            self.assertTrue(problem.startswith(start), problem)

    def test_retryable(self) -> None:
        """A missing file is worth a retry; an invalid one is not."""
        for web, tokens, retryable in (
            (None, "/none", True),
            ("x: 1", "/none", False),
            (SERVER.replace("server.key", "later.key"), "/none", True),
            (SERVER.replace("server.key", "/dev/null"), "/none", False),
        ):
            with self.assertRaises(ConfigurationError) as raised:
                self.load(web, WEB_BEARER_TOKENS_FILE=tokens)
            self.assertIs(retryable, raised.exception.retryable)

    def test_warning(self) -> None:
        """A hash that slows all logins is logged when the file is read."""
        self.load(USERS.replace("$04$", f"${MAX_USUAL_COST}$"))
        self.assertEqual([], self.book.lines())
        self.load(USERS.replace("$04$", "$18$"))
        [line] = self.book.lines()
        self.assertIn("warning WEB_CONFIG_FILE: ", line)
        self.assertIn("a hash has cost 18", line)

    def test_ssl_endpoint(self) -> None:
        """TLS and an ssl: endpoint exclude each other."""
        [problem] = self.why_not("", LISTEN_ADDRESS=":8080,ssl:8443:privateKey=x")
        self.assertIn("WEB_CONFIG_FILE and an ssl: endpoint", problem)

    def test_protected(self) -> None:
        """A server is protected if a credential or a certificate is required."""
        tokens = self.folder.path / "tokens"
        tokens.write_text("token-that-is-long-enough\n")
        for web, more, protected, encrypted in (
            ("", {}, False, False),
            (SERVER, {}, False, True),
            (VERIFIED, {}, False, True),
            (REQUIRED, {}, True, True),
            (USERS, {}, True, False),
            (None, {"WEB_BEARER_TOKENS_FILE": str(tokens)}, True, False),
        ):
            found = self.load(web, **more)
            assert found is not None
            is_encrypted = found.tls is not None
            self.assertEqual((protected, encrypted), (found.protected, is_encrypted))

    def test_new_certificate(self) -> None:
        """A renewed certificate makes a new context; a damaged one does not."""
        access, web = self.loaded(SERVER)
        before = web().context
        self.folder.authority.server().write(self.folder.path, "server")
        self.clock.advance(1)
        renewed = web().context
        self.assertIsNot(before, renewed)
        (self.folder.path / "server.key").write_bytes(self.folder.client.key)
        access.reload()
        self.assertIs(renewed, web().context)
        self.assertFalse(access.is_valid)
        self.assertEqual(
            [
                "info WEB_CONFIG_FILE: reloaded",
                f"error WEB_CONFIG_FILE: {self.folder.file}:"
                " tls_server_config.key_file: the key does not belong to the"
                " certificate; the previous configuration stays in use",
            ],
            [line.partition(" setting=")[0] for line in self.book.lines()],
        )

    def test_other_kind(self) -> None:
        """A rotation to another type of key keeps the old pair until its end."""
        access, web = self.loaded(SERVER)
        before = web().context
        renewed = self.folder.authority.server(rsa_key())
        (self.folder.path / "server.pem").write_bytes(renewed.pem)
        self.clock.advance(1)
        self.assertIs(before, web().context)
        self.assertFalse(access.is_valid)
        [line] = self.book.lines()
        self.assertIn("key_file: the key does not belong to the certificate", line)
        renewed.write(self.folder.path, "server")
        self.clock.advance(1)
        self.assertIsNot(before, web().context)
        self.assertTrue(access.is_valid)

    def test_changed(self) -> None:
        """A change needs a restart if it weakens authentication or switches TLS."""
        named = f"{REQUIRED}  client_allowed_sans: [test3]\n"
        sans, stop = "client_allowed_sans: ", "a reload cannot stop"
        for before, after, words in (
            (SERVER, "", "a reload cannot switch TLS on or off"),
            ("", SERVER, "a reload cannot switch TLS on or off"),
            (REQUIRED, SERVER, f"{stop} requiring client certificates"),
            (
                REQUIRED,
                REQUIRED.replace("RequireAndVerifyClientCert", "NoClientCert"),
                "it needs a client_auth_type",
            ),
            (REQUIRED, VERIFIED, f"type: {stop} requiring"),
            (named, REQUIRED, f"{sans}{stop} checking"),
            (named, named.replace("test3", ""), "an empty list rejects all"),
            (
                REQUIRED,
                REQUIRED.replace("  client_ca_file: ca.pem\n", ""),
                f"{stop} using",
            ),
            (USERS, "", "a reload cannot remove all users"),
            (USERS + SERVER, SERVER, "a reload cannot remove all users"),
            ("", USERS, ""),
            (SERVER, REQUIRED, ""),
            (SERVER, SERVER + USERS, ""),
            (REQUIRED, named, ""),
        ):
            access, web = self.loaded(before)
            self.book.events.clear()
            kept = web()
            self.folder.write(after)
            self.clock.advance(1)
            self.assertEqual(bool(words), web() is kept, (before, after))
            self.assertEqual(not words, access.is_valid)
            [line] = self.book.lines()
            self.assertIn(words or "WEB_CONFIG_FILE: reloaded", line)
            self.assertTrue(words or access.protected)

    def test_describe(self) -> None:
        """Each authentication method has a line, and so has a server without any."""
        tokens = self.folder.path / "tokens"
        tokens.write_text("a-token-for-everything\naccount=x a-token-for-a-part\n")
        accounts = self.folder.path / "accounts"
        accounts.mkdir()
        (accounts / "x.conf").touch()
        path = str(tokens)
        nobody = "no authentication: anyone who can connect can read all pages"
        for web, more, expected in (
            ("", {}, [nobody]),
            (SERVER, {}, ["TLS, no client certificates", nobody]),
            (
                VERIFIED,
                {},
                ["TLS, client certificates verified, but not required", nobody],
            ),
            (REQUIRED, {}, ["TLS, client certificates required and verified"]),
            (
                USERS,
                {
                    "WEB_BEARER_TOKENS_FILE": path,
                    "WEB_OPEN_PATHS": "/sd",
                    "ACCOUNTS_DIR": str(accounts),
                },
                [
                    "passwords of 1 user",
                    "2 tokens, 1 limited to some accounts",
                    "no password or token required: /sd, /sd/accounts",
                ],
            ),
        ):
            found = self.load(web, **more)
            assert found is not None
            self.assertEqual(expected, found.describe())

"""The web configuration file: what is accepted, and the errors of the rest."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access import tls_config as names
from api_exporter.access.web_config import MAX_BYTES, load, parse_duration
from api_exporter.settings.errors import ConfigurationError
from tests.access.folder import HASH, SERVER, Folder, lines

SOME = "tls_server_config:\n"
SUITE = "TLS_ECDHE_ECDSA_WITH_AES_2048"
MISSING_CERT = "2: tls_server_config: cert_file, or cert, is missing"
MISSING_KEY = "2: tls_server_config: key_file, or key, is missing"

FILES: dict[str, tuple[str, ...]] = {
    "": (),
    "hello, hello\n": ("1: the file: it must be a mapping",),
    f"{SOME}  cert_filse: a.pem\n": ("2: tls_server_config.cert_filse: no such key",),
    f'{SOME}  cert_file: ""\n  key_file: server.key\n': (MISSING_CERT,),
    f'{SOME}  cert: ""\n  key_file: server.key\n': (MISSING_CERT,),
    f'{SOME}  cert_file: server.pem\n  key_file: ""\n': (MISSING_KEY,),
    f'{SOME}  cert_file: server.pem\n  key: ""\n': (MISSING_KEY,),
    f'{SOME}  client_auth_type: RequireAndVerifyClientCert\n  cert_file: ""\n': (
        *(MISSING_CERT, MISSING_KEY),
    ),
    f"{SOME}  cert_file: somefile\n  key_file: server.key\n": (
        "2: tls_server_config.cert_file: ",
    ),
    f"{SOME}  cert_file: server.pem\n  key_file: somefile\n": (
        "3: tls_server_config.key_file: ",
    ),
    f"{SOME}  cert_file: somefile\n  key_file: somefile\n": (
        "2: tls_server_config.cert_file: ",
        "3: tls_server_config.key_file: ",
    ),
    f"{SERVER}  client_ca_file: ca.pem\n": (
        "2: tls_server_config: client_ca needs a client_auth_type",
    ),
    f"{SERVER}  client_auth_type: RequireAnyClientCert\n  client_ca_file: somefile\n": (
        "5: tls_server_config.client_ca_file: ",
    ),
    "basic_auth_users:\n  john: doe\n": (
        "2: basic_auth_users: the password of a user must be a bcrypt hash",
    ),
    f"{SERVER}  cipher_suites:\n  - {SUITE}\n": (
        "5: tls_server_config.cipher_suites: each must be one of",
    ),
    f"{SERVER}  curve_preferences:\n  - CurveP257\n": (
        "5: tls_server_config.curve_preferences: each must be one of",
    ),
    f"{SERVER}  min_version: TLS111\n": (
        "4: tls_server_config.min_version: it must be one of TLS10,",
    ),
}
"""Files, of which the toolkit's own table has most, and their errors."""


class TableTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Folder(self, self.mktemp())

    def assert_bad(self, text: str, *expected: str) -> None:
        found = self.folder.problems(text)
        self.assertEqual(len(expected), len(found), found)
        for begin, problem in zip(expected, found, strict=True):
            place, _, words = begin.partition(": ")
            line, _, told = problem.partition(": ")
            self.assertEqual(place.rpartition(":")[2], line.rpartition(":")[2], found)
            self.assertIn(words, told)

    def test_files(self) -> None:
        """The same files are refused as by the toolkit, and the error names the key."""
        for text, expected in FILES.items():
            self.assert_bad(text, *expected)

    def test_unreadable(self) -> None:
        """A missing file is retryable, and one that is no UTF-8 text is not."""
        self.folder.file.write_bytes(b"\xff\xfe")
        for path, words, retryable in (
            (self.folder.path / "none.yml", "No such file or directory", True),
            (self.folder.file, "the file is not UTF-8 text", False),
        ):
            with self.assertRaises(ConfigurationError) as raised:
                load(path, Path.read_bytes)
            self.assertEqual(retryable, raised.exception.retryable)
            self.assertIn(words, str(raised.exception))

    def test_name(self) -> None:
        """A file name in an error cannot begin a line, or control a terminal."""
        for name in ("a\\e[2J.pem", "a\\nb.pem", "\u05cf.pem"):
            text = f'tls_server_config: {{cert_file: "{name}", key: x}}'
            [problem] = self.folder.problems(text)
            self.assertTrue(problem.isprintable(), problem)

    def test_misplaced(self) -> None:
        """A key in place of its file's name is not repeated; a short name is."""
        key = self.folder.server.key
        text = f"tls_server_config:\n  cert_file: /a.pem\n  key_file: {lines(key)}\n"
        missing = "No such file or directory"
        self.assertEqual(
            [
                f"2: tls_server_config.cert_file: '/a.pem': {missing}",
                f"3: tls_server_config.key_file: a value of {len(key)} characters"
                f" in {self.folder.path}: {missing}",
            ],
            self.folder.problems(text),
        )
        text = "tls_server_config: {cert_file: b.pem, key: x}"
        expected = f"tls_server_config.cert_file: 'b.pem' in {self.folder.path}: "
        self.assert_bad(text, f"1: {expected}{missing}")

    def test_headers(self) -> None:
        """Five headers may be set, two of them to the toolkit's allowed values."""
        head = "http_server_config:\n  http2: false\n  headers:\n"
        good = (
            "Strict-Transport-Security: max-age=31536000",
            "X-Content-Type-Options: nosniff",
            "X-Frame-Options: sameorigin",
            'X-XSS-Protection: "1; mode=block"',
            "Content-Security-Policy: \"default-src 'self'\"",
        )
        found = self.folder.read(head + "".join(f"    {line}\n" for line in good))
        keys = [line.partition(":")[0].encode() for line in good]
        self.assertEqual(keys, [name for name, _ in found.headers])
        self.assertIn((b"X-XSS-Protection", b"1; mode=block"), found.headers)
        for line, words in (
            ("X-Content-Type-Options: sniff", "it must be nosniff, not 'sniff'"),
            ("X-Frame-Options: no", "it must be deny or sameorigin, not 'no'"),
            ("Server: x", "no such key"),
            ('Content-Security-Policy: "a\\r\\nb"', "it must be one line of ASCII"),
            ("X-XSS-Protection: ü", "it must be one line of ASCII"),
        ):
            key = line.partition(":")[0]
            expected = f"4: http_server_config.headers.{key}: {words}"
            self.assert_bad(f"{head}    {line}\n", expected)
        self.assert_bad("http_server_config:\n  http2: 2\n", "2: http_server_config")

    def test_limit(self) -> None:
        """A limit has an interval and a burst; without an interval there is none."""
        for text, expected in (
            ("rate_limit:\n  interval: 0\n  burst: 5\n", None),
            ("rate_limit:\n  burst: 5\n", None),
            ("rate_limit:\n  interval: 1s\n", (1.0, 0)),
            ("rate_limit:\n  interval: 1m30s\n  burst: 5\n", (90.0, 5)),
        ):
            self.assertEqual(expected, self.folder.read(text).limit)
        self.assert_bad(
            "rate_limit:\n  interval: 5\n  burst: -1\n",
            "2: rate_limit.interval: it must be a duration",
            "3: rate_limit.burst: it must be a whole number",
        )

    def test_wrong_kind(self) -> None:
        """A value that is no text is reported with its full key."""
        self.assert_bad(
            "rate_limit: {interval: [1]}\n",
            "1: rate_limit.interval: it must be a text",
            "1: rate_limit.interval: it must be a duration",
        )
        key = "http_server_config.headers.X-Frame-Options"
        self.assert_bad(
            "http_server_config: {headers: {X-Frame-Options: [deny]}}\n",
            f"1: {key}: it must be a text",
            f"1: {key}: it must be deny or sameorigin",
        )

    def test_hashes(self) -> None:
        """A hash that bcrypt would reject, or could never match, is refused."""
        for digest in (
            HASH[:-1],
            f"{HASH}x",
            HASH.replace("$04$", "$03$"),
            HASH.replace("$04$", "$32$"),
            HASH.replace("$2b$", "$1$"),
            HASH[:20] + "!" + HASH[21:],
            "ü" * 60,
            "",
        ):
            text = f'basic_auth_users:\n  john: "{digest}"\n'
            self.assert_bad(text, "2: basic_auth_users: the")
        for kind in ("$2a$", "$2b$", "$2x$", "$2y$"):
            digest = HASH.replace("$2b$", kind)
            found = self.folder.read(f'basic_auth_users:\n  john: "{digest}"\n')
            self.assertEqual({b"john": digest.encode()}, found.users)
        self.assert_bad(
            f'basic_auth_users:\n  "a:b": "{HASH}"\n',
            "2: basic_auth_users: the name of a user must not contain a colon",
        )

    def test_decoy(self) -> None:
        """The decoy costs as much as most hashes, up to a limit."""
        for costs, expected in (
            (("05", "12", "05", "10"), b"05"),
            (("05", "11", "10"), b"11"),
            (("18",), b"12"),
            (("18", "18", "10"), b"12"),
            ((), b"10"),
        ):
            text = "".join(
                f'  user{number}: "{HASH.replace("$04$", f"${cost}$")}"\n'
                for number, cost in enumerate(costs)
            )
            found = self.folder.read(f"basic_auth_users:\n{text}")
            self.assertEqual(b"$2b$" + expected + b"$", found.decoy[:7])
            self.assertEqual(60, len(found.decoy))

    def test_dear(self) -> None:
        """A hash that takes seconds to compare causes a warning."""
        dear = (
            f"{self.folder.file}: basic_auth_users: a hash has cost 18. One comparison"
            " takes about 26 seconds and delays all others. Use a cost from 10 to 12"
        )
        for cost, warnings in (("14", ()), ("18", (dear,))):
            other = HASH.replace("$04$", f"${cost}$")
            text = f'basic_auth_users:\n  a: "{HASH}"\n  b: "{other}"\n'
            self.assertEqual(warnings, self.folder.read(text).warnings)

    def test_quoted(self) -> None:
        """An empty text is no section, list, number or duration, but an error."""
        frame = "http_server_config: {headers: {X-Frame-Options: ''}}"
        for text, expected in (
            ("''", "1: the file: it must be a mapping"),
            ("basic_auth_users: ''", "1: basic_auth_users: it must be a mapping"),
            ("tls_server_config: ''", "1: tls_server_config: it must be a mapping"),
            ("http_server_config: ''", "1: http_server_config: it must be a mapping"),
            ("rate_limit: ''", "1: rate_limit: it must be a mapping"),
            ("basic_auth_users: !!null [a]", "1: basic_auth_users: it must be a map"),
            ("rate_limit: {interval: ''}", "1: rate_limit.interval: it must be a dur"),
            ("rate_limit: {burst: ''}", "1: rate_limit.burst: it must be a whole num"),
            (frame, "1: http_server_config.headers.X-Frame-Options: it must be deny"),
            (
                f"{SERVER}  min_version: ''\n",
                "4: tls_server_config.min_version: it must",
            ),
            (
                f"{SERVER}  cipher_suites: ''\n",
                "4: tls_server_config.cipher_suites: it",
            ),
        ):
            self.assert_bad(text, expected)
        for text in ("basic_auth_users:", "rate_limit: ~", "tls_server_config: null"):
            self.assertEqual([], self.folder.problems(text))
        text = f"basic_auth_users: !!null {{ alice: '{HASH}' }}"
        self.assertEqual([b"alice"], list(self.folder.read(text).users))

    def test_long(self) -> None:
        """A file that would take long to parse is refused before it is parsed."""
        users = "".join(f'  user{n}: "{HASH}"\n' for n in range(800))
        found = self.folder.read(f"basic_auth_users:\n{users}")
        self.assertEqual(800, len(found.users))
        [problem] = self.folder.problems("[" * (MAX_BYTES + 1))
        self.assertEqual(" the file has more than 65536 bytes", problem)

    def test_all_at_once(self) -> None:
        """All errors of a file are reported at once."""
        self.assert_bad(
            "nonsense: 1\nrate_limit: {burst: x}\nbasic_auth_users: {a: b}\n",
            "1: nonsense: no such key",
            "3: basic_auth_users: ",
            "2: rate_limit.burst: ",
        )


class TlsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Folder(self, self.mktemp())

    def test_none(self) -> None:
        """An empty section configures no TLS."""
        for text in ("", SOME, "tls_server_config: {cert_file: ''}\n"):
            self.assertIs(None, self.folder.read(text).tls)

    def test_files(self) -> None:
        """Relative file names start at the folder of the configuration."""
        found = self.folder.read(SERVER).tls
        assert found is not None
        self.assertEqual(self.folder.server.pem, found.certificate)
        self.assertEqual(self.folder.server.key, found.key)
        self.assertEqual(names.CLIENT_AUTH["NoClientCert"], found.client_auth)
        self.assertFalse(found.client_auth.required)
        self.assertEqual((0x303, 0x304), (found.min_version, found.max_version))
        self.assertEqual(names.DEFAULT_CIPHERS, found.ciphers)
        expected = f"{self.folder.file}:3: tls_server_config.key_file"
        self.assertEqual(expected, found.places["key_file"])

    def test_inline(self) -> None:
        """Certificate and key may stand in the file itself; a file wins, as in Go."""
        inline = (
            f"tls_server_config:\n  cert: {lines(self.folder.server.pem)}\n"
            f"  key: {lines(self.folder.server.key)}\n"
        )
        for more in ("", "  key_file: server.key\n"):
            found = self.folder.read(inline + more).tls
            assert found is not None
            self.assertEqual(self.folder.server.key.strip(), found.key.strip())

    def test_secret(self) -> None:
        """No traceback shows a key or a hash."""
        found = self.folder.read(f'{SERVER}basic_auth_users:\n  a: "{HASH}"\n')
        self.assertEqual("<web configuration>", repr(found))
        self.assertEqual("<TLS>", repr(found.tls))

    def test_names(self) -> None:
        """Ciphers and curves have Go's names; those of TLS 1.3 are a separate list."""
        text = f"{SERVER}  prefer_server_cipher_suites: true\n"
        text += "  curve_preferences: [X25519, CurveP256]\n  cipher_suites:\n"
        for ciphers, older, newer in (
            (["TLS_AES_128_GCM_SHA256"], None, ("TLS_AES_128_GCM_SHA256",)),
            (
                ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"],
                ("ECDHE-RSA-AES128-SHA",),
                ("TLS_AES_128_GCM_SHA256",),
            ),
            (["TLS_RSA_WITH_AES_128_CBC_SHA"], ("AES128-SHA",), ()),
        ):
            found = self.folder.read(text + "".join(f"  - {c}\n" for c in ciphers)).tls
            assert found is not None
            self.assertEqual((older, newer), (found.ciphers, found.ciphers_13))
            self.assertEqual(("X25519", "P-256"), found.curves)

    def test_old(self) -> None:
        """If old versions are allowed, their ciphers are offered, too."""
        found = self.folder.read(f"{SERVER}  min_version: TLS10\n").tls
        assert found is not None
        self.assertEqual(names.DEFAULT_CIPHERS + names.OLD_CIPHERS, found.ciphers)

    def test_contradictions(self) -> None:
        """Contradictions are refused."""
        auth, sans = "client_auth_type: ", "client_allowed_sans: [a]"
        for text, expected in (
            (f"{auth}Sometimes", "4.client_auth_type: it must be"),
            (
                f"{auth}VerifyClientCertIfGiven\n  {sans}",
                "5.client_allowed_sans: client_auth_type must be",
            ),
            (
                f"{auth}RequireAnyClientCert\n  client_allowed_sans: []",
                "5.client_allowed_sans: an empty list rejects all clients",
            ),
            (sans, "4.client_allowed_sans: client_auth_type must be"),
            (
                "min_version: TLS13\n  max_version: TLS12",
                "2: min_version is newer than max_version",
            ),
            (
                "max_version: TLS12\n  cipher_suites: [TLS_AES_128_GCM_SHA256]",
                "5.cipher_suites: max_version allows none of these cipher suites",
            ),
            (
                "prefer_server_cipher_suites: 3",
                "4.prefer_server_cipher_suites: it must",
            ),
        ):
            [problem] = self.folder.problems(f"{SERVER}  {text}\n")
            start = f"{expected[0]}: tls_server_config{expected[1:]}"
            self.assertTrue(problem.startswith(start), problem)
        for kind, expected_auth in names.CLIENT_AUTH.items():
            found = self.folder.read(f"{SERVER}  {auth}{kind}\n").tls
            assert found is not None
            self.assertEqual(expected_auth, found.client_auth)


class DurationTests(SynchronousTestCase):
    def test_all(self) -> None:
        """All durations that Go accepts are accepted; each needs a known unit."""
        for seconds, texts in {
            0.0: ("0", "0s"),
            0.5: (".5s", "500ms"),
            1.0: ("1s", "1.s"),
            90.0: ("1m30s",),
            5400.0: ("1.5h",),
            5e-6: ("5us", "5µs", "5μs"),
            7e-9: ("7ns",),
        }.items():
            for text in texts:
                self.assertAlmostEqual(seconds, parse_duration(text), places=12)
        for text in ("", "1", "s", "1d", "-1s", "1 s", "1s ", ".s", "١s", "9999999h"):
            with self.assertRaises(ValueError, msg=text):
                parse_duration(text)

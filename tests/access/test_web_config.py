"""The web configuration file: what is accepted, and the errors of the rest."""

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access import web_config
from api_exporter.access.reloading import MAX_FILE_BYTES
from api_exporter.access.tls import make_context
from api_exporter.access.web_config import CIPHERS, WebConfig, load
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.regular_file import read_regular_file
from tests.access.folder import HASH, SERVER, Folder

SOME = "tls_server_config:\n"
TLS = "tls_server_config"
MISSING_CERT = f"{TLS}.cert_file: it is missing"
MISSING_KEY = f"{TLS}.key_file: it is missing"
HEADERS = "http_server_config.headers"
USERS = "basic_auth_users: it must be a mapping of users, whose names have no colon,"
BOOLEAN = "it must be true or false"
POLICY = (
    "it must be NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert:"
    " other policies verify no certificate"
)
VERSION = "it must be TLS12 or TLS13: older versions are not secure"
NO_PEM = "PEM is not read from here: write it into a file, and name that in"

REFUSED: dict[str, tuple[str, ...]] = {
    "hello, hello\n": ("the file: Expected `object`, got `str`",),
    "''": ("the file: Expected `object`, got `str`",),
    "- a": ("the file: Expected `object`, got `array`",),
    "nonsense: 1": ("the file: no such key: 'nonsense'",),
    f"{SOME}  cert_filse: a.pem\n": (f"{TLS}: no such key: 'cert_filse'",),
    "$2b$secret: 5": ("the file: no such key: a value of 10 characters",),
    "nbp_secretsecret: 5": ("the file: no such key: 'nbp_…'",),
    '"a` - at `$.s3cret": 5': ("the file: no such key: a value of 17 characters",),
    "tls_server_config: ''": (f"{TLS}: Expected `object | null`, got `str`",),
    f'{SOME}  cert_file: ""\n  key_file: server.key\n': (MISSING_CERT,),
    f'{SOME}  cert_file: server.pem\n  key_file: ""\n': (MISSING_KEY,),
    f"{SOME}  client_auth_type: RequireAndVerifyClientCert\n  cert_file:\n": (
        *(MISSING_CERT, MISSING_KEY),
    ),
    f"{SERVER}  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: 1\n": (
        f"{TLS}.client_ca_file: '1' in ",
    ),
    f"{SOME}  cert_file: somefile\n  key_file: /some.key\n": (
        f"{TLS}.cert_file: 'somefile' in ",
        f"{TLS}.key_file: '/some.key': No such file or directory",
    ),
    f"{SERVER}  client_ca_file: ca.pem\n": (
        f"{TLS}.client_ca_file: it needs a client_auth_type",
    ),
    f"{SERVER}  client_allowed_sans: [a]\n": (
        f"{TLS}.client_allowed_sans: it needs RequireAndVerifyClientCert",
    ),
    f"{SERVER}  client_allowed_sans: []\n": (
        f"{TLS}.client_allowed_sans: it must be a list of at least one name: an empty",
    ),
    f"{SERVER}  client_auth_type: ''\n": (f"{TLS}.client_auth_type: {POLICY}",),
    **{
        f"{SERVER}  client_auth_type: {policy}\n": (
            f"{TLS}.client_auth_type: {POLICY}",
        )
        for policy in (
            *("RequestClientCert", "RequireAnyClientCert", "RequireClientCert"),
            "Sometimes",
        )
    },
    **{
        f"{SERVER}  min_version: {version}\n": (f"{TLS}.min_version: {VERSION}",)
        for version in ("TLS10", "TLS11", "TLS111", "''", "[TLS12]")
    },
    f"{SERVER}  max_version: TLS12\n": (
        f"{TLS}.max_version: the newest version is always allowed",
    ),
    f"{SERVER}  curve_preferences: [X25519]\n": (
        f"{TLS}.curve_preferences: the curves cannot be chosen",
    ),
    "rate_limit: {interval: 1s}\n": (
        "rate_limit: requests are not limited here: use a proxy or a firewall",
    ),
    **{
        f"{SERVER}  {key}: PEM\n": (f"{TLS}.{key}: {NO_PEM} {key}_file",)
        for key in ("cert", "key", "client_ca")
    },
    **{
        f"{SERVER}  cipher_suites: {suites}\n": (
            f"{TLS}.cipher_suites: it must be a list; each must be one of TLS_AES_128",
        )
        for suites in ("[TLS_ECDHE_ECDSA_WITH_AES_2048]", "''", "[[]]", "{}")
    },
    f"{SERVER}  prefer_server_cipher_suites: 3\n": (
        f"{TLS}.prefer_server_cipher_suites: {BOOLEAN}",
    ),
    "http_server_config:\n  http2: 2\n": (f"http_server_config.http2: {BOOLEAN}",),
    "http_server_config: ''": (
        "http_server_config: Expected `object | null`, got `str`",
    ),
    "basic_auth_users: ''": (USERS,),
    "basic_auth_users:\n  john: doe\n": (USERS,),
    "basic_auth_users:\n  john:\n": (USERS,),
    f"basic_auth_users:\n  a:b: {HASH}\n": (USERS,),
    "basic_auth_users: !!null [a]": (USERS,),
    **{
        f"http_server_config:\n  headers:\n    {line}\n": (f"{HEADERS}{words}",)
        for line, words in (
            ("X-Content-Type-Options: sniff", ".X-Content-Type-Options: it must be no"),
            ("X-Frame-Options: no", ".X-Frame-Options: it must be deny or sameorigin"),
            ("X-Frame-Options: [deny]", ".X-Frame-Options: it must be deny or same"),
            ("Server: x", ": no such key: 'Server'"),
            (
                'Content-Security-Policy: "a\\r\\nb"',
                ".Content-Security-Policy: it must be one line of ASCII",
            ),
            ("X-XSS-Protection: ü", ".X-XSS-Protection: it must be one line of ASCII"),
        )
    },
}
"""Files, of which the toolkit's own table has many, and their errors."""


class TableTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Folder(self, self.mktemp())

    def read(self, text: str) -> WebConfig:
        """Load a web configuration, and what it names."""
        found = self.folder.read(text)
        if found.tls is not None:
            make_context(found.tls, self.folder.file, Path.read_bytes)
        return found

    def problems(self, text: str) -> list[str]:
        try:
            self.read(text)
        except ConfigurationError as error:
            return [x.removeprefix(f"{self.folder.file}: ") for x in error.problems]
        return []

    def test_refused(self) -> None:
        """An error begins with the place in the file, and repeats no value."""
        for text, expected in REFUSED.items():
            found = self.problems(text)
            self.assertEqual(len(expected), len(found), (text, found))
            for begin, problem in zip(expected, found, strict=True):
                self.assertTrue(problem.startswith(begin), (text, problem))
                self.assertNotIn("3cret", problem)

    def test_no_yaml(self) -> None:
        """Invalid YAML is reported with its line, without its content."""
        once = "a key must be a text that occurs once"
        for text, expected in (
            ("a: 1\nb: [1\n", "3: expected "),
            ("a: 1\n b: 2\n", "2: "),
            ("a: *secret\n", "1: found undefined alias …"),
            ("a: 1\n---\nb: 2\n", "2: "),
            ("a: \x01secret", " the file contains a character that YAML forbids"),
            (r'"\UFFFFFFFFsecret"', " the file contains a character that YAML forbids"),
            ("[" * 5000, " the file is nested too deeply"),
            ("a: &a [*a]", " the file is nested too deeply"),
            ("a: 1\nsecret: 2\nsecret: 3\n", f"3: {once}"),
            (f"basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n", f"3: {once}"),
            ("? [secret]\n: 4", f"1: {once}"),
        ):
            [problem] = self.folder.problems(text)
            self.assertTrue(problem.startswith(expected), (text, problem))
            self.assertNotIn("secret", problem)

    def test_aliases(self) -> None:
        """Aliases that multiply take no time."""
        lines = ["a0: &a0 [x]"]
        lines += [
            f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 99)
        ]
        problems = self.folder.problems("\n".join(lines))
        self.assertEqual([" the file: no such key: 'a0'"], problems)

    def test_unreadable(self) -> None:
        """A missing file is retryable; a pipe, or one that is no UTF-8 text, is not."""
        self.folder.file.write_bytes(b"\xff\xfe")
        pipe = self.folder.path / "pipe"
        os.mkfifo(pipe)
        for path, words, retryable in (
            (self.folder.path / "none.yml", "No such file or directory", True),
            (self.folder.file, "the file is not UTF-8 text", False),
            (pipe, "the file is not a regular file", False),
        ):
            with self.assertRaises(ConfigurationError) as raised:
                load(path, lambda path: read_regular_file(path, MAX_FILE_BYTES))
            self.assertEqual(retryable, raised.exception.retryable)
            self.assertIn(words, str(raised.exception))

    def test_long(self) -> None:
        """A file that would take long to parse is refused before it is parsed."""
        users = "".join(f'  user{n}: "{HASH}"\n' for n in range(800))
        found = self.folder.read(f"basic_auth_users:\n{users}")
        self.assertEqual(800, len(found.users))
        self.assertEqual({}, self.folder.read("#" * 65_536).users)
        [problem] = self.folder.problems("#" * 65_537)
        self.assertIn("has more than 65536 bytes", problem)

    def test_name(self) -> None:
        """A file name in an error cannot begin a line, or control a terminal."""
        for name in ("a\\e[2J.pem", "a\\nb.pem", "\u05cf.pem", "a\\ud800b"):
            text = f'tls_server_config: {{cert_file: "{name}", key_file: server.key}}'
            [problem] = self.problems(text)
            self.assertTrue(problem.isprintable(), problem)

    def test_misplaced(self) -> None:
        """A key in place of its file's name is not repeated; a short name is."""
        key = self.folder.server.key.decode().replace("\n", "\n    ")
        text = f"{SOME}  cert_file: /a.pem\n  key_file: |\n    {key}\n"
        missing = "No such file or directory"
        self.assertEqual(
            [
                f"{TLS}.cert_file: '/a.pem': {missing}",
                f"{TLS}.key_file: a value of {len(self.folder.server.key)} characters"
                f" in {self.folder.path}: {missing}",
            ],
            self.problems(text),
        )

    def test_headers(self) -> None:
        """Five headers may be set; an empty one is not sent."""
        good = {
            "Strict-Transport-Security": "max-age=31536000",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "sameorigin",
            "X-XSS-Protection": "1; mode=block",
            "Content-Security-Policy": "default-src 'self'",
        }
        text = "".join(f'    {name}: "{value}"\n' for name, value in good.items())
        head = "http_server_config:\n  http2: false\n  headers:\n"
        self.assertEqual(good, self.folder.read(head + text).headers)
        self.assertEqual({}, self.folder.read(head).headers)
        free = ("Strict-Transport-Security", "X-XSS-Protection", *[*good][-1:])
        empty = "".join(f'    {name}: ""\n' for name in free)
        self.assertEqual({}, self.folder.read(head + empty).headers)

    def test_hashes(self) -> None:
        """A hash that bcrypt would reject, or could never match, is refused."""
        for digest in (
            HASH[:-1],
            f"{HASH}x",
            f"{HASH}\\n",
            HASH.replace("$04$", "$03$"),
            HASH.replace("$04$", "$32$"),
            HASH.replace("$2b$", "$1$"),
            HASH[:20] + "!" + HASH[21:],
            "ü" * 60,
            "",
        ):
            [problem] = self.problems(f'basic_auth_users:\n  john: "{digest}"\n')
            self.assertTrue(problem.startswith(USERS), problem)
        for kind in ("$2a$", "$2b$", "$2x$", "$2y$"):
            digest = HASH.replace("$2b$", kind)
            found = self.folder.read(f'basic_auth_users:\n  john: "{digest}"\n')
            self.assertEqual({"john": digest}, found.users)

    def test_texts(self) -> None:
        """Names are texts, also if YAML has another meaning for them."""
        names = ["1", "on", "~x", "1.5", "2026-01-01", "null", "true"]
        text = "".join(f"  '{name}': {HASH}\n" for name in names)
        self.assertEqual(names, list(self.read(f"basic_auth_users:\n{text}").users))
        sans = f"client_allowed_sans: [{', '.join(names[:5])}]"
        auth = "client_auth_type: RequireAndVerifyClientCert"
        found = self.read(f"{SERVER}  {auth}\n  {sans}\n").tls
        assert found is not None
        self.assertEqual(frozenset(names[:5]), found.client_allowed_sans)

    def test_nothing(self) -> None:
        """A key without a value counts as missing, as in Go."""
        for text in (
            *("", "# a comment\n", "~", "null", "{}", "basic_auth_users:"),
            *("tls_server_config: null", "http_server_config: {headers: }"),
            *(SOME, f"{SOME}  cert_file: ''\n", f"{SOME}  min_version:\n"),
        ):
            found = self.folder.read(text)
            self.assertEqual((None, {}, {}), (found.tls, found.headers, found.users))
        text = "".join(
            f"  {key}:\n" for key in web_config.TlsConfig.__struct_fields__[2:]
        )
        self.assertEqual([], self.problems(SERVER + text))

    def test_ciphers(self) -> None:
        """Each cipher of TLS 1.2 has the names of Go and of OpenSSL."""
        for name, expected in CIPHERS.items():
            short = name.removeprefix("TLS_").removeprefix("RSA_WITH_")
            for words, word in (("_WITH", ""), ("AES_", "AES"), ("_CBC", "")):
                short = short.replace(words, word)
            short = short.replace("POLY1305_SHA256", "POLY1305").replace("_", "-")
            self.assertEqual(expected, short)

    def test_tls(self) -> None:
        """All values of the section, with Go's names."""
        found = self.folder.read(
            f"{SERVER}  client_auth_type: RequireAndVerifyClientCert\n"
            "  client_ca_file: ca.pem\n  client_allowed_sans: [a, b]\n"
            "  min_version: TLS13\n  prefer_server_cipher_suites: yes\n"
            "  cipher_suites: [TLS_AES_128_GCM_SHA256]\n"
        ).tls
        assert found is not None
        self.assertTrue(found.requires_certificates)
        self.assertEqual(frozenset("ab"), found.client_allowed_sans)
        self.assertEqual("TLS13", found.min_version)
        self.assertEqual(("TLS_AES_128_GCM_SHA256",), found.cipher_suites)

    def test_secret(self) -> None:
        """No traceback shows a hash."""
        found = self.folder.read(f'{SERVER}basic_auth_users:\n  a: "{HASH}"\n')
        self.assertEqual("<web configuration>", repr(found))

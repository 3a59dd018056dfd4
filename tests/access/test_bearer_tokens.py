"""The file of bearer tokens."""

from hashlib import sha256
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.bearer_tokens import Tokens, load_tokens
from api_exporter.ports import ALL_ACCOUNTS
from api_exporter.settings.errors import ConfigurationError

SECRET = "t0ken-that-is-long-enough"
HASHED = sha256(SECRET.encode()).hexdigest()


class TokensTests(SynchronousTestCase):
    def read(self, content: str | bytes, *, named_accounts: bool = True) -> Tokens:
        self.path = Path(self.mktemp())
        self.path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_tokens(self.path, Path.read_bytes, named_accounts=named_accounts)

    def refused(
        self, content: str | bytes, *, named_accounts: bool = True
    ) -> ConfigurationError:
        error: ConfigurationError = self.assertRaises(
            ConfigurationError, self.read, content, named_accounts=named_accounts
        )
        return error

    def test_forms(self) -> None:
        """A line is a token, or its hash; a name and accounts may stand before it."""
        acme = frozenset({"acme", "beta"})
        for line, expected in (
            (SECRET, ALL_ACCOUNTS),
            (f"  {SECRET}\t", ALL_ACCOUNTS),
            (f"sha256:{HASHED}", ALL_ACCOUNTS),
            (f"sha256:{HASHED.upper()}", ALL_ACCOUNTS),
            (f"prometheus {SECRET}", ALL_ACCOUNTS),
            (f"p account=acme,beta {SECRET}", acme),
            (f"account=acme,beta sha256:{HASHED}", acme),
            (f"# a comment\n\n{SECRET}\r\n", ALL_ACCOUNTS),
        ):
            found = self.read(f"{line}\n")
            self.assertEqual(expected, found.authenticate(SECRET.encode()), line)
            for wrong in (b"", SECRET.encode()[:-1], HASHED.encode(), b"\xff" * 20):
                self.assertIs(None, found.authenticate(wrong))

    def test_wrong(self) -> None:
        """All invalid lines are reported by number, without their content."""
        digits = "f" * 63
        for line, words in (
            ("t0ken-too-short", "a token must have at least 16 visible characters"),
            (f"sha256:{digits}", "sha256: must be followed by 64 hexadecimal digits"),
            (f"a b {SECRET}", "a line must be [NAME] [account=NAME,NAME] TOKEN"),
            (f"t0ken/x {SECRET}", "a line must be [NAME] [account=NAME,NAME] TOKEN"),
            (f"account=a account=b {SECRET}", "a line must be [NAME]"),
            (f"account=,t0ken {SECRET}", "account= must be names"),
            (f"account= {SECRET}", "account= must be names"),
            ("t0ken account=acme", "the token is missing"),
            (f"{SECRET}\n{SECRET}", "the token is listed twice"),
            (f"{SECRET}\naccount=a {SECRET}", "the token is listed twice"),
            (f"account=a {SECRET}\nb {SECRET}", "the token is listed twice"),
            (f"account=a {SECRET}\nsha256:{HASHED}", "the token is listed twice"),
            (f"{SECRET}\x01", "a token must have at least"),
        ):
            [problem] = self.refused(f"good-token-of-somebody\n{line}\n").problems
            number = 2 + line.count("\n")
            self.assertTrue(problem.startswith(f"{self.path}:{number}: {words}"))
            self.assertNotIn("t0ken", problem.removeprefix(str(self.path)))
        self.assertEqual(2, len(self.refused("short\nshorter\n").problems))

    def test_shortest(self) -> None:
        self.assertIsNotNone(self.read("a" * 16).authenticate(b"a" * 16))
        self.refused("a" * 15)

    def test_one_account(self) -> None:
        """If accounts have no names, no token can be limited to some."""
        error = self.refused(f"account=acme {SECRET}", named_accounts=False)
        self.assertIn(":1: account= needs ACCOUNTS_DIR", str(error))
        found = self.read(SECRET, named_accounts=False)
        self.assertIsNotNone(found.authenticate(SECRET.encode()))

    def test_no_tokens(self) -> None:
        """A file without tokens, or that cannot be read, is refused."""
        for content in ("", "# none\n"):
            error = self.refused(content)
            self.assertIn("the file contains no token", str(error))
            self.assertTrue(error.retryable)
        error = self.refused("ü".encode() * 20)
        self.assertIn("the file contains a non-ASCII character", str(error))

        def refuse(_path: Path) -> bytes:
            raise ValueError("the file is not a regular file")

        for path, read, words in (
            ("/none", Path.read_bytes, "No such file"),
            ("/", Path.read_bytes, "directory"),
            ("/x", refuse, "/x: the file is not a regular file"),
        ):
            with self.assertRaises(ConfigurationError) as raised:
                load_tokens(Path(path), read, named_accounts=True)
            self.assertIn(words, str(raised.exception))

    def test_secret(self) -> None:
        self.assertEqual("<tokens>", repr(self.read(SECRET)))

"""The token: how it is hidden, checked and read."""

import os
from base64 import b64encode
from pathlib import Path

from msgspec import Struct
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.token import (
    MAX_TOKEN_BYTES,
    Token,
    TokenFile,
    TokenReader,
    parse_token,
    token_file,
)

SECRET = "nbp_canary"


class Holder(Struct, frozen=True):
    """An object with a token."""

    token: Token


class TokenTests(SynchronousTestCase):
    def test_hidden(self) -> None:
        """No text form of a token contains the secret; equal ones have one hash."""
        held = Token(SECRET)
        for text in (
            *(repr(held), str(held), f"{held}", f"{held!s:>30} {held!r}"),
            "%s %r" % (held, held),  # noqa: UP031 - the old way is in use, too
            "{0} {token}".format(held, token=held),  # noqa: UP032 - likewise
            repr([held, {"token": held}, Holder(held)]),
        ):
            self.assertNotIn("canary", text)
            self.assertIn("<token>", text)
        self.assertEqual(2, len({Token("a"), Token("a"), Token("b")}))
        self.assertNotEqual(Token("a"), "a")

    def test_allowed(self) -> None:
        """A token is visible ASCII; any other text is refused and not repeated."""
        for text in ("x", "nbp_1", "a.b-c_d~e+f/g==", "/+", "~/x"):
            self.assertEqual(text, parse_token(text).reveal())
        for text in ("", "canary x", "canary\t", "canary\n", "canarÿ", "canary\x7f"):
            raised = self.assertRaises(ValueError, parse_token, text)
            self.assertNotIn("canar", str(raised))

    def test_decorated(self) -> None:
        """An error says what to leave out of a copied value, which is not repeated."""
        for text, words in (
            ('"canary"', "leave out the quotes around the token"),
            ("'canary'", "leave out the quotes around the token"),
            ('canary"', "leave out the quotes around the token"),
            ("UPSTREAM_API_TOKEN=canary", "leave out the name before the token"),
            ("export TOKEN=canary", "leave out the name before the token"),
            ("token: canary", "leave out the prefix before the token"),
            ('{"token":"canary"}', "the value is JSON: leave out all but the token"),
            ("<canary-token>", "the value is a placeholder: put your token in its"),
            ("Token canary", "leave out the prefix before the token"),
            ("bearer canary", "leave out the prefix before the token"),
            ("Authorization: Bearer canary", "leave out the prefix before the token"),
            ("canary;canary", "a token has letters, digits and - . _ ~ + / only"),
        ):
            error = self.assertRaises(ValueError, parse_token, text)
            self.assertTrue(str(error).startswith(words), text)

    def test_doubts(self) -> None:
        """A token that looks like something else is used, with a warning."""
        for text, words in (
            ("A616CB1C-1A2B-4C3D-9E4F-5A6B7C8D9E0F", "the form of a setup key"),
            ("eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "the form of a dashboard login"),
            ("nbx_canary", "the form of a reverse proxy's token"),
            (b64encode(b"nbp_canary").decode(), "the form of base64 of nbp_"),
            (b64encode(b"nbp_0").decode(), "the form of base64 of nbp_"),
            ("/run/secrets/canary", "the form of a path: UPSTREAM_API_TOKEN_FILE"),
            ("~/canary", "the form of a path: UPSTREAM_API_TOKEN_FILE"),
            ("nbp_canary", "the checksum of the token is wrong"),
        ):
            doubt = parse_token(text).doubt()
            self.assertIn(words, doubt)
            self.assertNotIn("canary", doubt)
        for text in ("x", "nbp_0123456789abcdefghijABCDEFGHIJ3mpbCX", "a/b+c==", "/a+"):
            self.assertEqual("", parse_token(text).doubt(), text)


class ChecksumTests(SynchronousTestCase):
    def test_good(self) -> None:
        """A NetBird token with the right checksum is not mistyped."""
        for text in (
            "nbp_0123456789abcdefghijABCDEFGHIJ3mpbCX",
            "nbp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1yLcDB",
            "nbp_0000000000000000000000000000F800PAtE",
            "nbp_0000000000000000000000000002WH000puc",
        ):
            self.assertEqual(40, len(text))
            self.assertFalse(Token(text).mistyped(), text)

    def test_mistyped(self) -> None:
        """A changed letter is detected, unless the token is of another kind."""
        good = "nbp_0123456789abcdefghijABCDEFGHIJ3mpbCX"
        for text in (
            *(good[:-1], good[:4] + good[5:], good + "m", good.replace("9a", "a9")),
            *(good.replace("3mpb", "3mpB"), good[:4] + good[4:].swapcase()),
            *("nbp_", "nbp_123456", "nbp_0000000000000000000000000002WHpuc"),
        ):
            self.assertTrue(Token(text).mistyped(), text)
        for text in ("x", "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "NBP_1", "nbp-1", " nbp_"):
            self.assertFalse(Token(text).mistyped(), text)


class TokenFileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp())

    def test_white_space(self) -> None:
        """White space around the token is not part of it."""
        for text in ("nbp_x", "nbp_x\n", "nbp_x\r\n", "  \tnbp_x \n\n"):
            self.path.write_bytes(text.encode())
            self.assertEqual("nbp_x", TokenFile(self.path).read().reveal())
            self.assertEqual("nbp_x", token_file(str(self.path)).read().reveal())

    def test_useless(self) -> None:
        """A file with a wrong token has a one-line error without its content."""
        ascii_only = "the file contains a non-ASCII character"
        visible_only = "the token contains a space, control or non-ASCII character"
        for words, contents in {
            "the file is empty": (b"", b" \n\t\n"),
            ascii_only: ("canarÿ".encode(), b"\xff\xfecanary", b"\xef\xbb\xbfcanary"),
            visible_only: (b"canary other", b"canary\nother", b"canary\x00"),
        }.items():
            for content in contents:
                self.path.write_bytes(content)
                self.assertEqual(words, self.refused(self.path), content)

    def test_no_file(self) -> None:
        """A pipe, device or missing file is an error, and is closed."""
        missing = self.path.with_suffix(".x")
        os.mkfifo(self.path)
        before = len(os.listdir("/proc/self/fd"))
        for path in (self.path, self.path.parent, Path("/dev/zero")):
            self.assertEqual("the file is not a regular file", self.refused(path))
        self.assertEqual(before, len(os.listdir("/proc/self/fd")))
        self.assertEqual("No such file or directory", self.refused(missing))

    def test_too_long(self) -> None:
        """A token file has 64 kB at most."""
        self.path.write_text("x" * MAX_TOKEN_BYTES)
        self.assertEqual(MAX_TOKEN_BYTES, len(TokenFile(self.path).read().reveal()))
        self.path.write_text("x" * MAX_TOKEN_BYTES + "\n")
        words = f"the file has more than {MAX_TOKEN_BYTES} bytes"
        self.assertEqual(words, self.refused(self.path))

    def test_not_yet(self) -> None:
        """Only errors that waiting may resolve are retryable."""
        for content, passing in (("", True), (" \n", True), ("a b", False)):
            self.path.write_text(content)
            raised = self.assertRaises(ValueError, token_file, str(self.path))
            self.assertEqual(passing, getattr(raised, "retryable", False), content)
        with self.assertRaises(ConfigurationError) as missing:
            token_file(f"{self.path}.missing")
        self.assertTrue(missing.exception.retryable)

    def refused(self, path: Path) -> str:
        """Return why a file is refused, at the start and later alike."""
        first = self.assertRaises(ValueError, token_file, str(path))
        later = self.assertRaises(ValueError, TokenFile(path).read)
        self.assertEqual(str(first), str(later))
        return str(first)


class TokenReaderTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.path.write_text("first\n")
        self.errors: list[str] = []
        self.source = TokenReader(TokenFile(self.path), self.errors.append)

    def now(self) -> str:
        return self.source().reveal()

    def test_new_content(self) -> None:
        """A new content of the file, or a new file, is used at once."""
        self.assertEqual("first", self.now())
        self.path.write_text("second\n")
        self.assertEqual("second", self.now())
        beside = self.path.with_suffix(".new")
        beside.write_text("third\n")
        os.replace(beside, self.path)
        self.assertEqual(("third", []), (self.now(), self.errors))

    def test_unreadable_later(self) -> None:
        """The last readable token stays in use; each first failure is reported."""
        for content, words in (
            (None, "No such file or directory"),
            ("", "the file is empty"),
            ("canary x", "the token contains a space, control or non-ASCII character"),
        ):
            self.path.write_text("good")
            self.assertEqual("good", self.now())
            self.errors.clear()
            if content is None:
                self.path.unlink()
            else:
                self.path.write_text(content)
            self.assertTrue(self.source.readable)
            self.assertEqual(["good"] * 3, [self.now() for _ in range(3)])
            self.assertFalse(self.source.readable)
            self.assertEqual([f"{self.path}: {words}"], self.errors)
            with self.assertRaises(ValueError):
                TokenReader(TokenFile(self.path), self.errors.append)

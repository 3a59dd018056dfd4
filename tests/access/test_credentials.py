"""The Authorization header."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.credentials import (
    BasicCredentials,
    BearerCredentials,
    UnknownCredentials,
    parse,
)

KNOWN = {"<token>", "<password>", "UnknownCredentials()"}


class CredentialsTests(SynchronousTestCase):
    def test_schemes(self) -> None:
        """Two schemes are known, in any case."""
        basic = b64encode(b"alice:open:sesame")
        for value, expected in (
            (b"Bearer abc", BearerCredentials(b"abc")),
            (b"bearer   abc ", BearerCredentials(b"abc")),
            (b"Bearer", BearerCredentials(b"")),
            (b"Basic " + basic, BasicCredentials(b"alice", b"open:sesame")),
            (b"bAsIc  " + basic, BasicCredentials(b"alice", b"open:sesame")),
            (b"Basic " + b64encode(b":"), BasicCredentials(b"", b"")),
            (b"Basic " + b64encode(b"no colon"), UnknownCredentials()),
            (b"Basic !", UnknownCredentials()),
            (b"Digest x", UnknownCredentials()),
            (b"", UnknownCredentials()),
        ):
            self.assertEqual(expected, parse([value]))

    def test_several(self) -> None:
        """None is nothing, and two are one too many."""
        self.assertIs(None, parse(None))
        self.assertIs(None, parse([]))
        self.assertEqual(UnknownCredentials(), parse([b"Bearer a", b"Bearer a"]))

    @given(st.binary(), st.binary())
    def test_round_trip(self, user: bytes, password: bytes) -> None:
        """Whatever bytes a password has, they arrive."""
        user = user.replace(b":", b"")
        found = parse([b"Basic " + b64encode(user + b":" + password)])
        self.assertEqual(BasicCredentials(user, password), found)

    @given(st.binary())
    def test_anything(self, value: bytes) -> None:
        """Nothing that a client sends is an error of ours, or shown by one."""
        for scheme in (b"", b"Basic ", b"Bearer "):
            found = parse([scheme + b64encode(b":" + value)])
            self.assertIn(repr(found), KNOWN)
            self.assertIn(repr(parse([scheme + value])), KNOWN)

"""The Authorization header."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.credentials import Credentials, parse

KNOWN = {f"<{kind} credentials>" for kind in ("bearer", "basic", "unknown")}


class CredentialsTests(SynchronousTestCase):
    def test_schemes(self) -> None:
        """Both schemes are recognized in any case."""
        basic = b64encode(b"alice:open:sesame")
        for value, expected in (
            (b"Bearer abc", Credentials("bearer", b"abc")),
            (b"bearer   abc ", Credentials("bearer", b"abc")),
            (b"Bearer", Credentials("bearer", b"")),
            (b"Basic " + basic, Credentials("basic", b"open:sesame", b"alice")),
            (b"bAsIc  " + basic, Credentials("basic", b"open:sesame", b"alice")),
            (b"Basic " + b64encode(b":"), Credentials("basic", b"", b"")),
            (b"Basic " + b64encode(b"no colon"), Credentials("unknown")),
            (b"Basic !", Credentials("unknown")),
            (b"Digest x", Credentials("unknown")),
            (b"", Credentials("unknown")),
        ):
            self.assertEqual(expected, parse([value]))

    def test_several(self) -> None:
        """No header means no credentials; two headers mean unknown ones."""
        self.assertIs(None, parse(None))
        self.assertIs(None, parse([]))
        self.assertEqual(Credentials("unknown"), parse([b"Bearer a", b"Bearer a"]))

    @given(st.binary(), st.binary())
    def test_round_trip(self, user: bytes, password: bytes) -> None:
        """A password may have any bytes."""
        user = user.replace(b":", b"")
        found = parse([b"Basic " + b64encode(user + b":" + password)])
        self.assertEqual(Credentials("basic", password, user), found)

    @given(st.binary())
    def test_anything(self, value: bytes) -> None:
        """No header raises an error or appears in a representation."""
        for scheme in (b"", b"Basic ", b"Bearer "):
            found = parse([scheme + b64encode(b":" + value)])
            self.assertIn(repr(found), KNOWN)
            self.assertIn(repr(parse([scheme + value])), KNOWN)

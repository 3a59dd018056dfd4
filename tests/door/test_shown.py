"""The Authorization header."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.door.shown import Bearer, Password, Unknown, shown

KNOWN = {"<token>", "<password>", "Unknown()"}


class ShownTests(SynchronousTestCase):
    def test_schemes(self) -> None:
        """Two schemes are known, in any case."""
        basic = b64encode(b"alice:open:sesame")
        for value, expected in (
            (b"Bearer abc", Bearer(b"abc")),
            (b"bearer   abc ", Bearer(b"abc")),
            (b"Bearer", Bearer(b"")),
            (b"Basic " + basic, Password(b"alice", b"open:sesame")),
            (b"bAsIc  " + basic, Password(b"alice", b"open:sesame")),
            (b"Basic " + b64encode(b":"), Password(b"", b"")),
            (b"Basic " + b64encode(b"no colon"), Unknown()),
            (b"Basic !", Unknown()),
            (b"Digest x", Unknown()),
            (b"", Unknown()),
        ):
            self.assertEqual(expected, shown([value]))

    def test_several(self) -> None:
        """None is nothing, and two are one too many."""
        self.assertIs(None, shown(None))
        self.assertIs(None, shown([]))
        self.assertEqual(Unknown(), shown([b"Bearer a", b"Bearer a"]))

    @given(st.binary(), st.binary())
    def test_round_trip(self, user: bytes, password: bytes) -> None:
        """Whatever bytes a password has, they arrive."""
        user = user.replace(b":", b"")
        found = shown([b"Basic " + b64encode(user + b":" + password)])
        self.assertEqual(Password(user, password), found)

    @given(st.binary())
    def test_anything(self, value: bytes) -> None:
        """Nothing that a client sends is an error of ours, or shown by one."""
        for scheme in (b"", b"Basic ", b"Bearer "):
            found = shown([scheme + b64encode(b":" + value)])
            self.assertIn(repr(found), KNOWN)
            self.assertIn(repr(shown([scheme + value])), KNOWN)

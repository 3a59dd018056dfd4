"""The cache of password comparisons."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.password_cache import (
    LONGEST,
    MOST,
    PasswordAttempt,
    PasswordCache,
)

DIGEST, OTHER, DECOY = b"$2b$04$a", b"$2b$05$b", b"$2b$12$."
USERS = {b"alice": DIGEST, b"bob": OTHER}


class PasswordCacheTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.cache = PasswordCache(b"k" * 32)

    def attempt(self, user: bytes, password: bytes) -> PasswordAttempt:
        return self.cache.attempt(USERS, DECOY, user, password)

    def test_learned(self) -> None:
        """The result of a comparison is cached, right or wrong."""
        for password, matches in ((b"right", True), (b"wrong", False)):
            attempt = self.attempt(b"alice", password)
            self.assertEqual(DIGEST, attempt.digest)
            self.assertIs(None, self.cache.known(attempt))
            self.assertIs(matches, self.cache.learn(attempt, matches=matches))
            again = self.attempt(b"alice", password)
            self.assertIs(matches, self.cache.known(again))

    def test_unknown_user(self) -> None:
        """An unknown user is compared with the decoy, and wrong even if it matches."""
        attempt = self.attempt(b"eve", b"fakepassword")
        self.assertEqual(DECOY, attempt.digest)
        self.assertFalse(self.cache.learn(attempt, matches=True))
        self.assertIs(False, self.cache.known(attempt))

    def test_long(self) -> None:
        """A password that bcrypt would cut off is wrong, for unknown users as well."""
        for user in (b"alice", b"eve"):
            longest = self.attempt(user, b"x" * LONGEST)
            self.assertIs(None, self.cache.known(longest))
            longer = self.attempt(user, b"x" * (LONGEST + 1))
            self.assertIs(False, self.cache.known(longer))

    def test_poisoned(self) -> None:
        """A known hash does not allow another pair that is cached as right."""
        good = self.attempt(b"alice", b"right")
        self.cache.learn(good, matches=True)
        for user, password in (
            (b"alice" + DIGEST, b"right"),
            (b"ali", b"ce" + DIGEST + b"right"),
            (b"alice", DIGEST + b"right"),
            (b"alice" + DIGEST + b"right", b""),
            (b"bob", b"right"),
        ):
            self.assertIs(None, self.cache.known(self.attempt(user, password)))

    def test_glued(self) -> None:
        """User, hash and password with equal concatenations are different attempts."""
        unknown = self.attempt(b"alice" + DIGEST, b"x")
        known = self.attempt(b"alice", DECOY + b"x")
        self.assertEqual(DECOY, unknown.digest)
        self.assertNotEqual(known.key, unknown.key)

    @given(st.binary(), st.binary(), st.binary(), st.binary())
    def test_keys(self, user: bytes, password: bytes, one: bytes, two: bytes) -> None:
        """Different pairs have different keys, wherever the user ends."""
        keys = {self.attempt(*pair).key for pair in ((user, password), (one, two))}
        self.assertEqual((user, password) != (one, two), len(keys) == 2)

    def test_changed(self) -> None:
        """A new hash invalidates the result of the old password."""
        self.cache.learn(self.attempt(b"alice", b"right"), matches=True)
        changed = self.cache.attempt({b"alice": OTHER}, DECOY, b"alice", b"right")
        self.assertIs(None, self.cache.known(changed))

    def test_own_places(self) -> None:
        """Guesses never remove right results; of the guesses the newest stay."""
        good = self.attempt(b"alice", b"right")
        self.cache.learn(good, matches=True)
        guesses = [self.attempt(b"alice", b"%d" % n) for n in range(MOST + 10)]
        for guess in guesses:
            self.cache.learn(guess, matches=False)
        self.assertIs(True, self.cache.known(good))
        known = [self.cache.known(guess) for guess in guesses]
        self.assertEqual([None] * 10 + [False] * MOST, known)

    def test_in_use(self) -> None:
        """A result that is in use stays; the least recently used one is removed."""
        attempts = [self.attempt(b"alice", b"%d" % n) for n in range(MOST + 1)]
        for attempt in attempts[:MOST]:
            self.cache.learn(attempt, matches=True)
        self.cache.known(attempts[0])
        self.cache.learn(attempts[MOST], matches=True)
        self.assertIs(True, self.cache.known(attempts[0]))
        self.assertIs(None, self.cache.known(attempts[1]))

    def test_secret(self) -> None:
        self.assertEqual("<attempt>", repr(self.attempt(b"alice", b"right")))

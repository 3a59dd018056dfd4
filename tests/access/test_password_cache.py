"""The cache of password comparisons."""

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.password_cache import (
    MAX_PASSWORD_BYTES,
    MAX_RESULTS,
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
            self.assertIs(None, self.cache.find_result(attempt))
            self.assertIs(matches, self.cache.add_result(attempt, matches=matches))
            again = self.attempt(b"alice", password)
            self.assertIs(matches, self.cache.find_result(again))

    def test_unknown_user(self) -> None:
        """An unknown user is compared with the decoy, and wrong even if it matches."""
        attempt = self.attempt(b"eve", b"fakepassword")
        self.assertEqual(DECOY, attempt.digest)
        self.assertFalse(self.cache.add_result(attempt, matches=True))
        self.assertIs(False, self.cache.find_result(attempt))

    def test_long(self) -> None:
        """A password that bcrypt would cut off is wrong, for unknown users as well."""
        for user in (b"alice", b"eve"):
            longest = self.attempt(user, b"x" * MAX_PASSWORD_BYTES)
            self.assertIs(None, self.cache.find_result(longest))
            longer = self.attempt(user, b"x" * (MAX_PASSWORD_BYTES + 1))
            self.assertIs(False, self.cache.find_result(longer))

    def test_poisoned(self) -> None:
        """A known hash does not allow another pair that is cached as right."""
        good = self.attempt(b"alice", b"right")
        self.cache.add_result(good, matches=True)
        for user, password in (
            (b"alice" + DIGEST, b"right"),
            (b"ali", b"ce" + DIGEST + b"right"),
            (b"alice", DIGEST + b"right"),
            (b"alice" + DIGEST + b"right", b""),
            (b"bob", b"right"),
        ):
            self.assertIs(None, self.cache.find_result(self.attempt(user, password)))

    @given(st.binary(), st.binary(), st.binary(), st.binary())
    @example(b"alice" + DIGEST, b"x", b"alice", DECOY + b"x")
    def test_keys(self, user: bytes, password: bytes, one: bytes, two: bytes) -> None:
        """Different pairs have different keys, wherever the user ends."""
        keys = {self.attempt(*pair).key for pair in ((user, password), (one, two))}
        self.assertEqual((user, password) != (one, two), len(keys) == 2)

    def test_changed(self) -> None:
        """A new hash invalidates the result of the old password."""
        self.cache.add_result(self.attempt(b"alice", b"right"), matches=True)
        changed = self.cache.attempt({b"alice": OTHER}, DECOY, b"alice", b"right")
        self.assertIs(None, self.cache.find_result(changed))

    def test_own_places(self) -> None:
        """Guesses never remove right results; of the guesses the newest stay."""
        good = self.attempt(b"alice", b"right")
        self.cache.add_result(good, matches=True)
        guesses = [self.attempt(b"alice", b"%d" % n) for n in range(MAX_RESULTS + 10)]
        for guess in guesses:
            self.cache.add_result(guess, matches=False)
        self.assertIs(True, self.cache.find_result(good))
        known = [self.cache.find_result(guess) for guess in guesses]
        self.assertEqual([None] * 10 + [False] * MAX_RESULTS, known)

    def test_in_use(self) -> None:
        """A result that is in use stays; the least recently used one is removed."""
        attempts = [self.attempt(b"alice", b"%d" % n) for n in range(MAX_RESULTS + 1)]
        for attempt in attempts[:MAX_RESULTS]:
            self.cache.add_result(attempt, matches=True)
        self.cache.find_result(attempts[0])
        self.cache.add_result(attempts[MAX_RESULTS], matches=True)
        self.assertIs(True, self.cache.find_result(attempts[0]))
        self.assertIs(None, self.cache.find_result(attempts[1]))

    def test_secret(self) -> None:
        self.assertEqual("<attempt>", repr(self.attempt(b"alice", b"right")))

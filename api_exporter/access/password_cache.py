"""A cache of passwords that were compared with their hashes."""

import hashlib
from collections.abc import Mapping

from msgspec import Struct

MOST = 100
"""Results that are kept of each kind."""

LONGEST = 72
"""Bytes of a password that bcrypt takes: longer ones are wrong."""


class PasswordAttempt(Struct, frozen=True):
    """A password to be compared with a hash.

    Attributes:
        key: tells this pair of user and password, and the user's hash, from all others.
        possible: False where it is wrong whatever the comparison finds.
    """

    key: bytes
    password: bytes
    digest: bytes
    possible: bool

    def __repr__(self) -> str:
        return "<attempt>"


class PasswordCache:
    """Results of comparisons, which are dear.

    Those that were good and those that were not have a place each, so that guesses push
    nobody out. No password is kept, but a hash with a key that dies with the process.

    Args:
        key: 32 random bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._results: dict[bool, dict[bytes, None]] = {True: {}, False: {}}

    def attempt(
        self, users: Mapping[bytes, bytes], decoy: bytes, user: bytes, password: bytes
    ) -> PasswordAttempt:
        """What has to be compared: for an unknown user something as dear."""
        digest = users.get(user, decoy)
        keyed = hashlib.blake2b(key=self._key, digest_size=32)
        for part in (user, digest, password):
            keyed.update(len(part).to_bytes(8, "big"))  # so that no two run together
            keyed.update(part)
        return PasswordAttempt(keyed.digest(), password, digest, user in users)

    def known(self, attempt: PasswordAttempt) -> bool | None:
        """The result, where it need not be computed."""
        if len(attempt.password) > LONGEST:
            return False
        for result, kept in self._results.items():
            if attempt.key in kept:
                del kept[attempt.key]  # the newest is the last
                kept[attempt.key] = None
                return result
        return None

    def learn(self, attempt: PasswordAttempt, *, matches: bool) -> bool:
        """Keep what a comparison has found; whether the password is right."""
        right = matches and attempt.possible
        kept = self._results[right]
        kept[attempt.key] = None
        if len(kept) > MOST:
            del kept[next(iter(kept))]
        return right

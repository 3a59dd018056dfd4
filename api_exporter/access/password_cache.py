"""A cache of the results of password comparisons."""

import hashlib
from collections.abc import Mapping

from msgspec import Struct

MAX_RESULTS = 100
"""The maximum number of cached results of each kind: right and wrong."""

MAX_PASSWORD_BYTES = 72
"""The maximum number of bytes of a password in bcrypt; longer ones are wrong."""


class PasswordAttempt(Struct, frozen=True):
    """A password and the hash to compare it with.

    Attributes:
        key: identifies the user, the password and the user's hash.
        user_exists: False for an unknown user: no password is right.
    """

    key: bytes
    password: bytes
    digest: bytes
    user_exists: bool

    def __repr__(self) -> str:
        return "<attempt>"


class PasswordCache:
    """Results of password comparisons, which are slow.

    Guesses never remove right results, which are cached apart. The cache holds no
    password, only a hash whose key is lost when the process ends.

    Args:
        key: 32 random bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._results: dict[bool, dict[bytes, None]] = {True: {}, False: {}}

    def attempt(
        self, users: Mapping[bytes, bytes], decoy: bytes, user: bytes, password: bytes
    ) -> PasswordAttempt:
        """Return the attempt; an unknown user gets the decoy, which takes as long."""
        digest = users.get(user, decoy)
        keyed = hashlib.blake2b(key=self._key, digest_size=32)
        for part in (user, digest, password):
            keyed.update(len(part).to_bytes(8, "big"))  # so that parts cannot merge
            keyed.update(part)
        return PasswordAttempt(keyed.digest(), password, digest, user in users)

    def find_result(self, attempt: PasswordAttempt) -> bool | None:
        """Return the cached result; None if a comparison is needed."""
        if len(attempt.password) > MAX_PASSWORD_BYTES:
            return False
        for result, kept in self._results.items():
            if attempt.key in kept:
                del kept[attempt.key]  # the most recently used is the last
                kept[attempt.key] = None
                return result
        return None

    def add_result(self, attempt: PasswordAttempt, *, matches: bool) -> bool:
        """Cache the result of a comparison; return whether the password is right."""
        right = matches and attempt.user_exists
        kept = self._results[right]
        kept[attempt.key] = None
        if len(kept) > MAX_RESULTS:
            del kept[next(iter(kept))]
        return right

"""Passwords: `basic_auth_users` of the web configuration file.

A thread compares them with their hashes, one at a time.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from secrets import token_bytes

from msgspec import Struct
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

_log = Logger()

Compare = Callable[[bytes, bytes], Deferred[bool]]
"""An asynchronous function that returns whether a password matches a hash."""

MAX_WAITING = 64
"""The maximum number of comparisons that wait for the running one."""

MAX_RESULTS = 1000
"""The maximum number of known right passwords."""

MAX_PASSWORD_BYTES = 72
"""The maximum number of bytes of a password in bcrypt; longer ones are wrong."""

_MAX_DECOY_COST = "12"
"""The maximum cost of the decoy: unknown users must not delay others."""


class QueueFull(Exception):
    """Too many passwords wait for a comparison."""


class _Comparison(Struct, frozen=True):
    password: bytes
    digest: bytes
    answers: list[Deferred[bool]]


class Passwords:
    """Comparisons of passwords, which are slow, and the known right ones.

    Equal requests share one comparison. No password is kept, only a hash whose key is
    lost when the process ends.
    """

    def __init__(self, compare: Compare) -> None:
        self._compare = compare
        self._key = token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._waiting: dict[bytes, _Comparison] = {}
        self._is_busy = False

    async def check(
        self, users: Mapping[str, str], user: bytes, password: bytes, *, may_wait: bool
    ) -> bool:
        """Return whether a password is right; raise QueueFull.

        The password of an unknown user is compared with a decoy, which takes as long.

        Args:
            users: the hash of each user's password; at least one.
            may_wait: True if the request may wait for the running comparison.
        """
        expected = users.get(user.decode("utf-8", "surrogateescape"))
        digest = (expected or make_decoy(users)).encode()
        if len(password) > MAX_PASSWORD_BYTES:
            return False
        # All hashes have the same length, so that the parts cannot merge.
        key = hashlib.blake2b(digest + password, key=self._key, digest_size=32).digest()
        if key in self._right:
            return True
        if self._is_busy and not may_wait:
            raise QueueFull
        if key not in self._waiting:
            if len(self._waiting) >= MAX_WAITING:
                raise QueueFull
            self._waiting[key] = _Comparison(password, digest, [])
        answer: Deferred[bool] = Deferred()
        self._waiting[key].answers.append(answer)
        if not self._is_busy:
            Deferred.fromCoroutine(self._compare_all())
        if not await answer or expected is None:
            return False
        self._right[key] = None
        if len(self._right) > MAX_RESULTS:
            del self._right[next(iter(self._right))]
        return True

    async def _compare_all(self) -> None:
        """Compare one after the other. A failed comparison means a wrong password."""
        self._is_busy = True
        while self._waiting:
            comparison = self._waiting.pop(next(iter(self._waiting)))
            right = False
            try:
                right = await self._compare(comparison.password, comparison.digest)
            except Exception:  # noqa: BLE001 - without memory for a thread, for one
                _log.failure("cannot compare a password")
            for answer in comparison.answers:
                answer.callback(right)
        self._is_busy = False


def make_decoy(users: Mapping[str, str]) -> str:
    """Return a hash that matches no password. Its cost is the lowest of all users."""
    cost = min(_MAX_DECOY_COST, *(digest[4:6] for digest in users.values()))
    return f"$2b${cost}${'.' * 53}"


def compare_in_thread(
    reactor: ReactorBase, make_threads: Callable[[], ThreadPool]
) -> Compare:
    """Return a function that compares in threads. Its first call starts them."""
    threads = cache(make_threads)
    return lambda password, digest: deferToThreadPool(
        reactor, threads(), matches, password, digest
    )


def matches(password: bytes, digest: bytes) -> bool:
    """Return whether a password matches a hash; one that bcrypt rejects does not."""
    import bcrypt  # noqa: PLC0415 - only if passwords are configured

    try:
        return bcrypt.checkpw(password, digest)
    except ValueError:
        return False

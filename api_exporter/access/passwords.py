"""Passwords: `basic_auth_users` of the web configuration file.

A thread compares them with their hashes, one at a time.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from secrets import token_bytes
from typing import TYPE_CHECKING

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from twisted.web.server import Request

from api_exporter.access.credentials import Credentials
from api_exporter.access.methods import (
    REALM,
    Allowed,
    AuthenticationMethod,
    Compare,
    QueueFull,
    client_address,
)
from api_exporter.access.password_cache import PasswordAttempt, PasswordCache
from api_exporter.access.reloading import Reloader
from api_exporter.plurals import with_noun
from api_exporter.serving.visibility import ALL_ACCOUNTS

if TYPE_CHECKING:
    from api_exporter.access.web_config import WebConfig

_log = Logger()

MAX_WAITING = 64
"""The maximum number of comparisons that wait for the running one."""


class Passwords(AuthenticationMethod):
    """Users with passwords. Each user has access to all accounts."""

    def __init__(self, web: "Reloader[WebConfig]", compare: Compare) -> None:
        self._web = web
        self._cache = PasswordCache(token_bytes(32))
        self._queue = ComparisonQueue(self._cache, compare)

    @property
    def is_required(self) -> bool:
        return bool(self._web().users)

    @property
    def challenge(self) -> bytes:
        return b"Basic " + REALM + b', charset="UTF-8"' if self.is_required else b""

    def authenticate(
        self, request: Request, credentials: Credentials | None, *, may_wait: bool
    ) -> Allowed | Deferred[Allowed]:
        config = self._web()
        if credentials is None or credentials.scheme != "basic" or not config.users:
            return None
        attempt = self._cache.attempt(
            config.users, config.decoy, credentials.user, credentials.secret
        )
        known = self._cache.find_result(attempt)
        if known is not None:
            return ALL_ACCOUNTS if known else None
        if self._queue.busy and not may_wait:
            return fail(QueueFull())
        right = self._queue.compare(attempt, client_address(request))
        return right.addCallback(lambda right: ALL_ACCOUNTS if right else None)

    def describe(self) -> str:
        users = self._web.value.users
        return f"passwords of {with_noun(len(users), 'user')}" if users else ""


class _Comparison:
    def __init__(self, attempt: PasswordAttempt, address: str) -> None:
        self.attempt = attempt
        self.address = address
        self.answers: list[Deferred[bool]] = []


class ComparisonQueue:
    """A queue of password comparisons. Equal attempts share one comparison.

    Users that exist go first, then the address with the fewest attempts, then the
    oldest attempt. If too many wait, the last in that order fails with QueueFull.
    """

    def __init__(self, cache: PasswordCache, compare: Compare) -> None:
        self._cache = cache
        self._compare = compare
        self._running: _Comparison | None = None
        self._waiting: list[_Comparison] = []

    @property
    def busy(self) -> bool:
        """True if the next comparison has to wait."""
        return self._running is not None

    def compare(self, attempt: PasswordAttempt, address: str) -> Deferred[bool]:
        """Compare a password with its hash. The result may fail with QueueFull."""
        answer: Deferred[bool] = Deferred()
        for comparison in (self._running, *self._waiting):
            if comparison is not None and comparison.attempt.key == attempt.key:
                comparison.answers.append(answer)
                return answer
        comparison = _Comparison(attempt, address)
        comparison.answers.append(answer)
        self._waiting.append(comparison)
        if self._running is None:
            self._start_next()
        elif len(self._waiting) > MAX_WAITING:
            last = max(reversed(self._waiting), key=self._rank())
            self._waiting.remove(last)
            for answer_of_last in last.answers:
                answer_of_last.errback(QueueFull())
        return answer

    def _rank(self) -> Callable[[_Comparison], tuple[bool, int]]:
        counts = Counter(waiting.address for waiting in self._waiting)
        return lambda one: (not one.attempt.user_exists, counts[one.address])

    def _start_next(self) -> None:
        self._running = min(self._waiting, key=self._rank(), default=None)
        if self._running is not None:
            self._waiting.remove(self._running)
            attempt = self._running.attempt
            # Without memory for a thread, the call itself raises.
            compared = maybeDeferred(self._compare, attempt.password, attempt.digest)
            compared.addBoth(self._finish, self._running)

    def _finish(self, result: bool | Failure, comparison: _Comparison) -> None:
        """End a comparison. A failed one means a wrong password, but is not cached."""
        right = False
        if isinstance(result, Failure):
            _log.failure("cannot compare a password", result)
        else:
            right = self._cache.add_result(comparison.attempt, matches=result)
        self._start_next()
        for answer in comparison.answers:
            answer.callback(right)


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

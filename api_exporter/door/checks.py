"""Comparing passwords with hashes: one at a time, in a thread."""

from collections import Counter
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from api_exporter.door.passwords import Attempt, Passwords

MOST_WAITING = 64
"""Comparisons that may wait for the one that is under way."""

Compare = Callable[[bytes, bytes], Deferred[bool]]
"""Whether a password has a hash; takes long, and is done elsewhere."""


class Busy(Exception):
    """Too many passwords wait to be compared."""


class _Asked:
    """A comparison that somebody waits for."""

    def __init__(self, attempt: Attempt, address: str) -> None:
        self.attempt = attempt
        self.address = address
        self.answers: list[Deferred[bool]] = []


class Checks:
    """Whoever shows the same as somebody before waits for the same comparison.

    Users that exist go first, then the address with the fewest comparisons, then who
    came first. Where too many wait, the last in that order is sent away.
    """

    def __init__(self, passwords: Passwords, compare: Compare) -> None:
        self._passwords = passwords
        self._compare = compare
        self._running: _Asked | None = None
        self._waiting: list[_Asked] = []

    @property
    def busy(self) -> bool:
        """Whether the next one has to wait."""
        return self._running is not None

    def right(self, attempt: Attempt, address: str) -> Deferred[bool]:
        """Whether a password is right, in time; fails with Busy."""
        answer: Deferred[bool] = Deferred()
        for asked in (self._running, *self._waiting):
            if asked is not None and asked.attempt.key == attempt.key:
                asked.answers.append(answer)
                return answer
        asked = _Asked(attempt, address)
        asked.answers.append(answer)
        self._waiting.append(asked)
        if self._running is None:
            self._next()
        elif len(self._waiting) > MOST_WAITING:
            last = max(reversed(self._waiting), key=self._place())
            self._waiting.remove(last)
            for answer_of_last in last.answers:
                answer_of_last.errback(Busy())
        return answer

    def _place(self) -> Callable[[_Asked], tuple[bool, int]]:
        """Of which the smallest is next."""
        counts = Counter(asked.address for asked in self._waiting)
        return lambda asked: (not asked.attempt.possible, counts[asked.address])

    def _next(self) -> None:
        self._running = min(self._waiting, key=self._place(), default=None)
        if self._running is not None:
            self._waiting.remove(self._running)
            attempt = self._running.attempt
            compared = self._compare(attempt.password, attempt.digest)
            compared.addBoth(self._compared, self._running)

    def _compared(self, result: bool | Failure, asked: _Asked) -> None:
        """What cannot be compared is wrong."""
        right = self._passwords.learn(asked.attempt, matches=result is True)
        self._next()
        for answer in asked.answers:
            answer.callback(right)

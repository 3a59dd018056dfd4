"""Comparing passwords with hashes: one at a time, in a thread."""

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from api_exporter.door.passwords import Attempt, Passwords

MOST_WAITING = 8
"""Comparisons that may wait for the one that is under way."""

MOST_OF_ONE = 4
"""Of these, those of a single address: one that guesses keeps no other waiting long."""

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
    """Whoever shows the same as somebody before waits for the same comparison."""

    def __init__(self, passwords: Passwords, compare: Compare) -> None:
        self._passwords = passwords
        self._compare = compare
        self._asked: dict[bytes, _Asked] = {}
        self._running = False

    def right(self, attempt: Attempt, address: str) -> Deferred[bool]:
        """Whether a password is right, in time; raises Busy."""
        if attempt.key not in self._asked:
            addresses = [asked.address for asked in self._asked.values()]
            if len(addresses) > MOST_WAITING or addresses.count(address) > MOST_OF_ONE:
                raise Busy
            self._asked[attempt.key] = _Asked(attempt, address)
        answer: Deferred[bool] = Deferred()
        self._asked[attempt.key].answers.append(answer)
        if not self._running:
            self._next()
        return answer

    def _next(self) -> None:
        first = next(iter(self._asked.values()), None)
        self._running = first is not None
        if first is not None:
            attempt = first.attempt
            compared = self._compare(attempt.password, attempt.digest)
            compared.addBoth(self._compared, attempt)

    def _compared(self, result: bool | Failure, attempt: Attempt) -> None:
        """What cannot be compared is wrong."""
        right = self._passwords.learn(attempt, matches=result is True)
        for answer in self._asked.pop(attempt.key).answers:
            answer.callback(right)
        self._next()

"""Passwords are compared one at a time, and few wait."""

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.door.checks import MOST_OF_ONE, MOST_WAITING, Busy, Checks
from api_exporter.door.passwords import Attempt, Passwords


class ChecksTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.compared: list[tuple[bytes, Deferred[bool]]] = []
        self.passwords = Passwords(b"k" * 32)
        self.checks = Checks(self.passwords, self.compare)

    def compare(self, password: bytes, _digest: bytes) -> Deferred[bool]:
        answer: Deferred[bool] = Deferred()
        self.compared.append((password, answer))
        return answer

    def attempt(self, password: bytes) -> Attempt:
        users = {b"alice": b"digest"}
        return self.passwords.attempt(users, b"decoy", b"alice", password)

    def ask(self, password: bytes, address: str = "a") -> Deferred[bool]:
        return self.checks.right(self.attempt(password), address)

    def test_one_at_a_time(self) -> None:
        """The next begins when the one before has ended, in order."""
        answers = [self.ask(password) for password in (b"1", b"2", b"3")]
        for number, matches in enumerate((False, True, False)):
            self.assertEqual(number + 1, len(self.compared))
            self.compared[number][1].callback(matches)
            self.assertEqual(matches, self.successResultOf(answers[number]))
        self.assertEqual(
            [b"1", b"2", b"3"], [password for password, _ in self.compared]
        )
        self.ask(b"4")
        self.assertEqual(b"4", self.compared[-1][0])

    def test_same(self) -> None:
        """Who shows the same waits for the same, and takes no place."""
        answers = [self.ask(b"1") for _ in range(50)]
        [(_, compared)] = self.compared
        compared.callback(True)
        self.assertEqual([True] * 50, [self.successResultOf(a) for a in answers])
        self.assertIs(True, self.passwords.known(self.attempt(b"1")))

    def test_busy(self) -> None:
        """Beside the one that is compared eight wait, no more."""
        for number in range(MOST_WAITING + 1):
            self.ask(b"%d" % number, f"host{number}")
        with self.assertRaises(Busy):
            self.ask(b"x", "another")
        self.ask(b"3", "another")
        self.compared[0][1].callback(False)
        self.ask(b"x", "another")

    def test_fair(self) -> None:
        """One address cannot take all places."""
        for number in range(MOST_OF_ONE + 1):
            self.ask(b"%d" % number, "guesser")
        with self.assertRaises(Busy):
            self.ask(b"x", "guesser")
        self.ask(b"y", "prometheus")

    def test_failure(self) -> None:
        """What cannot be compared is wrong, and those behind it go on."""
        first, second = self.ask(b"1"), self.ask(b"2")
        self.compared[0][1].errback(Failure(OSError()))
        self.assertIs(False, self.successResultOf(first))
        self.compared[1][1].callback(True)
        self.assertIs(True, self.successResultOf(second))

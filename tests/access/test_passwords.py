"""Passwords are compared one at a time, and few comparisons wait."""

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.methods import QueueFull
from api_exporter.access.password_cache import PasswordAttempt, PasswordCache
from api_exporter.access.passwords import (
    MAX_WAITING,
    ComparisonQueue,
    compare_in_thread,
)
from tests.memory_reactor import MemoryReactorClock


class ComparisonQueueTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.compared: list[tuple[bytes, Deferred[bool]]] = []
        self.cache = PasswordCache(b"k" * 32)
        self.queue = ComparisonQueue(self.cache, self.compare)

    def compare(self, password: bytes, _digest: bytes) -> Deferred[bool]:
        answer: Deferred[bool] = Deferred()
        self.compared.append((password, answer))
        return answer

    def attempt(self, password: bytes, user: bytes = b"alice") -> PasswordAttempt:
        users = {b"alice": b"digest"}
        return self.cache.attempt(users, b"decoy", user, password)

    def ask(self, password: bytes, address: str = "a") -> Deferred[bool]:
        return self.queue.compare(self.attempt(password), address)

    def test_one_at_a_time(self) -> None:
        """A comparison begins when the one before has ended, in order."""
        answers = [self.ask(password) for password in (b"1", b"2", b"3")]
        for number, matches in enumerate((False, True, False)):
            self.assertEqual(number + 1, len(self.compared))
            self.compared[number][1].callback(matches)
            self.assertEqual(matches, self.successResultOf(answers[number]))
        order = [password for password, _ in self.compared]
        self.assertEqual([b"1", b"2", b"3"], order)
        self.ask(b"4")
        self.assertEqual(b"4", self.compared[-1][0])

    def test_same(self) -> None:
        """Equal attempts share one comparison and one place."""
        answers = [self.ask(b"1") for _ in range(50)]
        [(_, compared)] = self.compared
        compared.callback(True)
        self.assertEqual([True] * 50, [self.successResultOf(a) for a in answers])
        self.assertIs(True, self.cache.find_result(self.attempt(b"1")))

    def test_busy(self) -> None:
        """If too many wait, the last one of the address with the most fails."""
        first = self.ask(b"first", "guesser")
        guesses = [self.ask(b"%d" % n, "guesser") for n in range(MAX_WAITING)]
        self.failureResultOf(self.ask(b"x", "guesser"), QueueFull)
        self.assertNoResult(self.ask(b"3", "another"))
        other = self.ask(b"right", "prometheus")
        self.failureResultOf(guesses.pop(), QueueFull)
        for answer in (first, other, *guesses):
            self.assertNoResult(answer)
            self.compared[-1][1].callback(False)
            self.assertIs(False, self.successResultOf(answer))

    def test_crowd(self) -> None:
        """If each attempt has an address of its own, the newest fails."""
        for number in range(MAX_WAITING + 1):
            self.ask(b"%d" % number, f"host{number}")
        self.failureResultOf(self.ask(b"x", "another"), QueueFull)

    def test_order(self) -> None:
        """Existing users are first, then the address with the fewest, then age."""
        for password, address, user in (
            (b"running", "guesser", b"alice"),
            (b"eve1", "a", b"eve"),
            (b"g1", "guesser", b"alice"),
            (b"g2", "guesser", b"alice"),
            (b"p", "prometheus", b"alice"),
            (b"g3", "guesser", b"alice"),
            (b"q", "grafana", b"alice"),
            (b"eve2", "b", b"eve"),
        ):
            self.queue.compare(self.attempt(password, user), address)
        while not self.compared[-1][1].called:
            self.compared[-1][1].callback(False)
        self.assertEqual(
            [b"running", b"p", b"q", b"g1", b"g2", b"g3", b"eve1", b"eve2"],
            [password for password, _ in self.compared],
        )

    def test_strangers(self) -> None:
        """Attempts of unknown users do not displace those of existing users."""
        running = self.ask(b"running")
        attempts = [self.attempt(b"%d" % n, b"eve") for n in range(MAX_WAITING)]
        strangers = [self.queue.compare(x, f"host{n}") for n, x in enumerate(attempts)]
        known = self.ask(b"right", "guesser")
        self.failureResultOf(strangers[-1], QueueFull)
        self.compared[0][1].callback(False)
        self.successResultOf(running)
        self.compared[1][1].callback(True)
        self.assertIs(True, self.successResultOf(known))

    def test_failure(self) -> None:
        """A comparison that fails is logged and not cached; the next ones go on."""
        first, second = self.ask(b"1"), self.ask(b"2")
        self.compared[0][1].errback(Failure(OSError()))
        self.assertIs(False, self.successResultOf(first))
        self.assertIsNone(self.cache.find_result(self.attempt(b"1")))
        self.assertEqual(1, len(self.flushLoggedErrors(OSError)))
        self.compared[1][1].callback(True)
        self.assertIs(True, self.successResultOf(second))

    def test_thread(self) -> None:
        """The event loop does not wait for a comparison."""
        threads = ThreadPool()  # never starts
        compare = compare_in_thread(MemoryReactorClock(), lambda: threads)  # type: ignore[arg-type]
        self.assertNoResult(compare(b"1", b"digest"))

    def test_no_thread(self) -> None:
        """If no thread can be started, the next comparison still begins."""

        def fail(_password: bytes, _digest: bytes) -> Deferred[bool]:
            raise RuntimeError("can't start new thread")

        self.queue = ComparisonQueue(self.cache, fail)
        for _ in range(2):
            self.assertIs(False, self.successResultOf(self.ask(b"1")))
        self.assertEqual(2, len(self.flushLoggedErrors(RuntimeError)))

"""Passwords are compared one at a time, and few comparisons wait."""

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.passwords import (
    MAX_PASSWORD_BYTES,
    MAX_RESULTS,
    MAX_WAITING,
    Passwords,
    QueueFull,
    compare_in_thread,
    make_decoy,
)
from tests.access.folder import HASH
from tests.memory_reactor import MemoryReactorClock

OTHER = HASH[:-1] + "u"
USERS = {"alice": HASH, "bob": OTHER}


class PasswordsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.compared: list[tuple[bytes, bytes, Deferred[bool]]] = []
        self.failure: Failure | None = None
        self.passwords = Passwords(self.compare)

    def compare(self, password: bytes, digest: bytes) -> Deferred[bool]:
        answer: Deferred[bool] = Deferred()
        self.compared.append((password, digest, answer))
        if self.failure is not None:
            answer.errback(self.failure)
        return answer

    def check(
        self, password: bytes, user: bytes = b"alice", *, may_wait: bool = True
    ) -> Deferred[bool]:
        checked = self.passwords.check(USERS, user, password, may_wait=may_wait)
        return Deferred.fromCoroutine(checked)

    def learn(self, password: bytes) -> None:
        """Let a password of alice be right."""
        answer = self.check(password)
        self.compared[-1][2].callback(True)
        self.assertIs(True, self.successResultOf(answer))

    def is_known(self, password: bytes, user: bytes = b"alice") -> bool:
        """Return whether a password is right without a comparison."""
        count, answer = len(self.compared), self.check(password, user)
        if len(self.compared) == count:
            return self.successResultOf(answer)
        self.compared[-1][2].callback(False)
        self.assertIs(False, self.successResultOf(answer))
        return False

    def test_one_at_a_time(self) -> None:
        """A comparison begins when the one before has ended, in order."""
        answers = [self.check(password) for password in (b"1", b"2", b"3")]
        for number, matches in enumerate((False, True, False)):
            self.assertEqual(number + 1, len(self.compared))
            self.compared[number][2].callback(matches)
            self.assertEqual(matches, self.successResultOf(answers[number]))
        self.assertEqual([b"1", b"2", b"3"], [one[0] for one in self.compared])

    def test_same(self) -> None:
        """Equal requests share one comparison and one place."""
        for password, right in ((b"1", True), (b"2", False)):
            running = self.check(b"running")
            answers = [self.check(password) for _ in range(5 * MAX_WAITING)]
            for matches in (False, right):
                self.compared[-1][2].callback(matches)
            self.assertIs(False, self.successResultOf(running))
            self.assertEqual({right}, {self.successResultOf(one) for one in answers})
            self.assertIs(right, self.is_known(password))
        self.assertEqual(5, len(self.compared))

    def test_full(self) -> None:
        """If too many wait, the next fails; one that may not wait fails at once."""
        answers = [self.check(b"%d" % n) for n in range(MAX_WAITING + 1)]
        self.failureResultOf(self.check(b"x"), QueueFull)
        for number, answer in enumerate(answers):
            self.failureResultOf(self.check(b"x", may_wait=False), QueueFull)
            self.compared[number][2].callback(False)
            self.assertIs(False, self.successResultOf(answer))
        self.assertNoResult(self.check(b"x", may_wait=False))

    def test_many_failures(self) -> None:
        """If the threads fail, all that wait get their answers."""
        answers = [self.check(b"%d" % n) for n in range(MAX_WAITING + 1)]
        failure = Failure(OSError())
        self.failure = failure
        self.compared[0][2].errback(failure)
        self.assertEqual({False}, {self.successResultOf(one) for one in answers})
        self.assertEqual(MAX_WAITING + 1, len(self.flushLoggedErrors(OSError)))

    def test_unknown_user(self) -> None:
        """An unknown user is compared with the decoy, and wrong even if it matches."""
        for user in (b"eve", b"\xff"):
            answer = self.check(b"fakepassword", user)
            password, digest, compared = self.compared[-1]
            self.assertEqual(
                (b"fakepassword", make_decoy(USERS).encode()), (password, digest)
            )
            compared.callback(True)
            self.assertIs(False, self.successResultOf(answer))
            self.assertFalse(self.is_known(b"fakepassword", user))

    def test_long(self) -> None:
        """A password that bcrypt would cut off is wrong, for unknown users as well."""
        for user in (b"alice", b"eve"):
            longer = self.check(b"x" * (MAX_PASSWORD_BYTES + 1), user)
            self.assertIs(False, self.successResultOf(longer))
        self.assertEqual([], self.compared)
        self.assertNoResult(self.check(b"x" * MAX_PASSWORD_BYTES))

    def test_other_pairs(self) -> None:
        """A right password makes no other pair right, and no other user's."""
        self.learn(b"right")
        for user, password in (
            (b"bob", b"right"),
            (b"eve", b"right"),
            (b"eve", HASH.encode() + b"right"),
            (b"alice" + HASH.encode(), b"right"),
            (b"alice", b""),
        ):
            self.assertFalse(self.is_known(password, user), user)
        self.assertTrue(self.is_known(b"right"))

    @given(st.binary(max_size=72), st.binary(max_size=72))
    @example(b"", HASH.encode())
    def test_keys(self, one: bytes, two: bytes) -> None:
        """A right password makes no other password right."""
        self.passwords = Passwords(self.compare)
        self.learn(one)
        self.assertEqual(one == two, self.is_known(two))

    def test_bounded(self) -> None:
        """The newest right passwords stay, and guesses remove none."""
        for number in range(MAX_RESULTS + 1):
            self.learn(b"%d" % number)
        for guess in (b"a", b"b"):
            self.assertFalse(self.is_known(guess))
        self.assertFalse(self.is_known(b"0"))
        self.assertTrue(self.is_known(b"1"))

    def test_failure(self) -> None:
        """A comparison that fails is logged and not kept; the next ones go on."""
        first, second = self.check(b"1"), self.check(b"2")
        self.compared[0][2].errback(Failure(OSError()))
        self.assertIs(False, self.successResultOf(first))
        self.assertEqual(1, len(self.flushLoggedErrors(OSError)))
        self.compared[1][2].callback(True)
        self.assertIs(True, self.successResultOf(second))
        self.assertFalse(self.is_known(b"1"))

    def test_decoy(self) -> None:
        """The decoy costs as much as the cheapest hash, up to a limit."""
        for costs, expected in (
            (("05", "12", "10"), "05"),
            (("11", "10"), "10"),
            (("18",), "12"),
        ):
            users = {cost: HASH.replace("$04$", f"${cost}$") for cost in costs}
            decoy = make_decoy(users)
            self.assertEqual((f"$2b${expected}$", 60), (decoy[:7], len(decoy)))

    def test_thread(self) -> None:
        """The event loop does not wait for a comparison."""
        threads = ThreadPool()  # never starts
        compare = compare_in_thread(MemoryReactorClock(), lambda: threads)  # type: ignore[arg-type]
        self.assertNoResult(compare(b"1", b"digest"))

"""The budget of one token, with numbers for times."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import UpstreamError
from api_exporter.refresh.budget import MAX_PAUSE, MAX_RATE, MIN_RATE, Budget, Candidate
from tests import tries
from tests.parts import attempt
from tests.parts import limiter as bucket

HOUR = 3600.0


class Wish:
    """A requester that may always send one request."""

    def __init__(self, budget: Budget, *, peers: bool = True) -> None:
        self.peers = peers
        self.budget = budget
        self.started = 0
        budget.offer(self, Clock())

    def candidates(self, now: float) -> Iterator[Candidate]:
        yield Candidate("peers", min(now, -1.0), 30.0, peers=self.peers)

    def start(self, name: str, now: float) -> None:  # noqa: ARG002 - there is one
        self.started += 1


def allowed_at(budget: Budget, *, peers: bool = True, now: float = 0.0) -> float:
    """Return when a request may start; now if one may already."""
    wish = Wish(budget, peers=peers)
    while (at := budget.next_at(now)) > now:
        now = at
    budget.withdraw(wish, Clock())
    return now


def asked(budget: Budget, now: float, *, peers: bool = True) -> float:
    """Send a request, whether it is allowed or not."""
    budget._begin(Candidate("", now, 30.0, peers=peers), now)
    budget.end(peers=peers)
    return now


class SlotTests(SynchronousTestCase):
    def test_eight(self) -> None:
        """Four of eight slots are for peers alone."""
        for peers in (True, False):
            budget = Budget()
            wish = Wish(budget, peers=peers)
            while budget.start_next(0.0):
                self.assertLessEqual(wish.started, 4)
            self.assertEqual(4, wish.started)
            other = Wish(budget, peers=not peers)
            self.assertTrue(budget.start_next(0.0))
            self.assertEqual(1, other.started)
            budget.withdraw(other, Clock())
            budget.end(peers=peers)
            self.assertTrue(budget.start_next(0.0))


class PauseTests(SynchronousTestCase):
    def refused(self, budget: Budget, now: float, wait: float | None = None) -> float:
        return budget.record_429(asked(budget, now), now, wait)

    def test_doubled(self) -> None:
        """Pauses double from 15 s to four minutes, until a good answer."""
        budget, now, pauses = Budget(), 0.0, []
        for _ in range(6):
            pauses.append(self.refused(budget, now))
            for peers in (True, False):
                at = allowed_at(budget, peers=peers, now=now)
                self.assertAlmostEqual(now + pauses[-1], at)
            now += pauses[-1]
        self.assertEqual([15, 30, 60, 120, 240, 240], pauses)
        budget.record_answer(asked(budget, now))
        self.assertEqual(15, self.refused(budget, now + 5.0))

    def test_asked_for(self) -> None:
        """A Retry-After is the length of the pause, unless it is zero."""
        for wait, pause in ((1.0, 1), (100.0, 100), (0.0, 15), (0.9, 15), (1e9, 1e9)):
            self.assertEqual(pause, self.refused(Budget(), 0.0, wait), wait)

    def test_long_pause_is_broken(self) -> None:
        """In a long pause, the peers are requested every four minutes."""
        budget = Budget()
        self.refused(budget, 0.0, 3600.0)
        self.assertEqual(3600.0, allowed_at(budget, peers=False))
        for now in (MAX_PAUSE, 2 * MAX_PAUSE):
            self.assertEqual(now, allowed_at(budget, now=now - 1.0))
            asked(budget, now)
        budget.record_answer(now)
        self.assertLessEqual(allowed_at(budget, peers=False, now=now), now + 20)

    def test_old_answers_tell_nothing(self) -> None:
        """A response to a request from before the pause does not change the pause."""
        for sent in (0.0, 1.0):
            budget = Budget()
            asked(budget, sent, peers=False)
            self.refused(budget, 1.0, 100.0)
            budget.record_answer(sent)
            self.assertEqual(101.0, allowed_at(budget, peers=False, now=2.0))
            self.assertEqual(99.0, budget.record_429(sent, 2.0, 500.0))
            self.assertEqual(0.0, budget.record_429(sent, 200.0, None))

    def test_other_unsent(self) -> None:
        """Another request that was not sent brings no probe of a long pause forward."""
        budget = Budget()
        self.refused(budget, 0.0, 3600.0)
        budget.refund(0.0)
        self.assertEqual(MAX_PAUSE, allowed_at(budget))


class EstimateTests(SynchronousTestCase):
    def refused(self, budget: Budget, now: float) -> float | None:
        budget.record_429(asked(budget, now), now, None)
        return budget.per_minute

    def test_first(self) -> None:
        """Before the first 429 there is no limit; after it NetBird's strictest one."""
        budget = Budget()
        for second in range(0, 240, 6):
            asked(budget, float(second))
        self.assertIsNone(budget.per_minute)
        self.assertEqual(239.0, allowed_at(budget, peers=False, now=239.0))
        self.assertEqual(6.0, self.refused(budget, 240.0))

    def test_bounds(self) -> None:
        """Some requests remain after any 429s; long without one, all do."""
        budget = Budget()
        for now in range(7200, 17_200, 500):
            self.refused(budget, float(now))
            budget.record_answer(float(now) + 300.0)
        self.assertEqual(MIN_RATE, budget.per_minute)
        asked(budget, 3600.0)
        self.assertEqual(MIN_RATE, budget.per_minute)
        asked(budget, 1e7)
        self.assertEqual(MAX_RATE, budget.per_minute)

    def test_grows(self) -> None:
        """The estimate grows by one a minute in a minute, then three in an hour."""
        budget = Budget()
        self.assertEqual(6.0, self.refused(budget, 0.0))
        self.assertEqual(6.25, self.refused(budget, 15.0))
        asked(budget, 315.0)
        self.assertEqual(11.25, budget.per_minute)
        budget.record_answer(315.0)
        self.assertEqual(0.75 * 11.25, self.refused(budget, 315.0))
        asked(budget, 315.0 + HOUR)
        self.assertEqual(0.75 * 11.25 + 3.0, budget.per_minute)

    def test_unsent(self) -> None:
        """A request that never reached the upstream does not count."""
        for wait, now in ((None, 60.0), (3600.0, 300.0)):
            budget = Budget()
            budget.record_429(asked(budget, 0.0), 0.0, wait)
            before = allowed_at(budget, now=now)
            for _ in range(100):
                budget.refund(asked(budget, now))
            self.assertEqual(before, allowed_at(budget, now=now))

    def test_refused_again(self) -> None:
        """A 429 counts if its attempt was sent after the pause."""
        budget = Budget()
        began = asked(budget, 0.0)
        budget.record_429(asked(budget, 10.0), 10.0, None)
        self.assertEqual(0.0, budget.record_429(began, 30.0, 3600.0))
        budget.observe(attempt(status=429, number=2, seconds=0.1), 30.0)
        self.assertEqual(3600.0, budget.record_429(began, 30.0, 3600.0))
        budget.observe(attempt(status=429, number=2, seconds=0.1), 31.0)
        self.assertEqual(3599.0, budget.record_429(began, 31.0, 1.0))

    def test_full(self) -> None:
        """A bucket that was full since the request began gets nothing back."""
        budget = Budget((30, 60))
        began = asked(budget, 0.0)
        budget.refund(asked(budget, 10.0))
        for _ in range(30):
            self.assertEqual(10.0, allowed_at(budget, now=10.0))
            asked(budget, 10.0)
        budget.refund(began)
        self.assertLess(10.0, allowed_at(budget, now=10.0))

    def test_attempts(self) -> None:
        """Each retry counts, except for one that never reached the upstream."""
        first, second = (attempt(status=503, number=number) for number in (1, 2))
        unsent = UpstreamError("connect", "lost", unsent=True)
        for attempts, opens in (
            ([first], 15.0),
            ([first, second], 25.0),
            ([first, replace(second, error=unsent)], 15.0),
        ):
            budget = Budget()
            budget.record_429(asked(budget, 0.0), 0.0, None)  # so six a minute
            for one in attempts:
                budget.observe(one, 0.0)
            self.assertEqual(opens, allowed_at(budget))

    @settings(max_examples=tries(30))
    @given(rate=st.floats(4, 30), burst=st.integers(5, 60))
    def test_settles(self, rate: float, burst: int) -> None:
        """A busy client gets few 429s from any limiter once the limit is estimated."""
        budget, limiter, now, refusals = Budget(), bucket(rate, burst), 0.0, []
        while now < 8 * 3600:
            now = allowed_at(budget, now=now + 1.0)
            if limiter.take(asked(budget, now)) == 0:
                budget.record_answer(now)
            else:
                refusals.append(now)
                budget.record_429(now, now, None)
        late = [at for at in refusals if at > 3600]
        self.assertLess(len(late), 7 * 6, "more than one in ten minutes")


class StatedTests(SynchronousTestCase):
    """The limit is stated."""

    def test_headroom(self) -> None:
        """Half of the burst is allowed at once, then nine tenths of the rate."""
        budget, now, made = Budget(limit=(60, 100)), 1000.0, []
        while (now := allowed_at(budget, now=now)) < 1600.5:
            made.append(asked(budget, now))
        self.assertEqual(50, made.count(1000.0))
        self.assertEqual(50 + 9 * 60, len(made))

    def test_refused_all_the_same(self) -> None:
        """If others use the token too, a 429 only begins a pause."""
        budget = Budget(limit=(60, 100))
        for second in range(120):
            asked(budget, float(second))
        self.assertEqual(15.0, budget.record_429(119.0, 119.0, None))
        self.assertEqual(54.0, budget.per_minute)
        self.assertAlmostEqual(134.0, allowed_at(budget, now=119.0))

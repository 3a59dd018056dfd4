"""The budget of one token, with numbers for times."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import Attempt
from api_exporter.refresh.budget import MAX_PAUSE, MAX_RATE, MAX_SAVED, MIN_RATE, Budget
from api_exporter.refresh.fair_share import Share
from tests import tries
from tests.parts import limiter as bucket

MINUTE = 60.0
HOUR = 3600.0


def asked(budget: Budget, now: float, *, peers: bool = True) -> float:
    budget.begin(now, peers=peers)
    budget.end(peers=peers)
    return now


class SlotTests(SynchronousTestCase):
    def test_eight(self) -> None:
        """Four of eight slots are for peers alone."""
        for peers in (True, False):
            budget = Budget()
            for _ in range(4):
                self.assertTrue(budget.has_free_slot(peers=peers))
                budget.begin(0.0, peers=peers)
            self.assertFalse(budget.has_free_slot(peers=peers))
            self.assertTrue(budget.has_free_slot(peers=not peers))
            budget.end(peers=peers)
            self.assertTrue(budget.has_free_slot(peers=peers))


class PauseTests(SynchronousTestCase):
    def refused(self, budget: Budget, now: float, wait: float | None = None) -> float:
        return budget.record_429(asked(budget, now), now, wait)

    def test_doubled(self) -> None:
        """A pause lasts a quarter of a minute, then doubles up to four minutes. After a
        good answer the next pause is a short one again.
        """
        budget, now, pauses = Budget(), 0.0, []
        for _ in range(6):
            pauses.append(self.refused(budget, now))
            now += pauses[-1]
            for peers in (True, False):
                self.assertLessEqual(now, budget.allowed_at(peers=peers))
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
        self.assertEqual(3600.0, budget.allowed_at(peers=False))
        for now in (MAX_PAUSE, 2 * MAX_PAUSE):
            self.assertEqual(now, budget.allowed_at(peers=True))
            asked(budget, now)
        budget.record_answer(now)
        self.assertLessEqual(budget.allowed_at(peers=False, reserved=None), now + 20)

    def test_old_answers_tell_nothing(self) -> None:
        """A response to a request from before the pause does not change the pause."""
        budget = Budget()
        before = asked(budget, 0.0, peers=False)
        self.refused(budget, 1.0, 100.0)
        budget.record_answer(before)
        self.assertEqual(101.0, budget.allowed_at(peers=False))
        self.assertEqual(99.0, budget.record_429(before, 2.0, 500.0))
        self.assertEqual(0.0, budget.record_429(before, 200.0, None))


class EstimateTests(SynchronousTestCase):
    def test_first(self) -> None:
        """Before the first 429 there is no limit; after it half of the recent rate."""
        budget = Budget()
        for second in range(0, 240, 6):
            asked(budget, float(second))
        self.assertIsNone(budget.per_minute)
        self.assertEqual(float("-inf"), budget.allowed_at(peers=False, reserved=0.0))
        budget.record_429(234.0, 234.0, None)
        self.assertEqual(5.0, budget.per_minute)

    def test_bounds(self) -> None:
        """After any number of 429s, some requests remain. After a long time without one
        the estimate limits nothing; a clock that is set back changes nothing.
        """
        budget = Budget()
        for now in range(7200, 17_200, 500):
            budget.record_429(asked(budget, float(now)), float(now), None)
        self.assertEqual(MIN_RATE, budget.per_minute)
        asked(budget, 3600.0)
        self.assertEqual(MIN_RATE, budget.per_minute)
        asked(budget, 1e7)
        self.assertEqual(MAX_RATE, budget.per_minute)

    def test_grows(self) -> None:
        """The second estimate grows by one a minute in a minute, a later one by six in
        an hour. A 429 before any good answer does not count as a new estimate.
        """
        budget = Budget()
        for now, minutes, grown in (
            (0.0, 5, 5.0),
            (1.0 * HOUR, 5, 5.0),
            (2.0 * HOUR, 60, 6.0),
            (4.0 * HOUR, 60, 6.0),
        ):
            for at in (now, now + 20.0):
                budget.record_429(asked(budget, at), at, None)
                self.assertEqual(MIN_RATE, budget.per_minute)
            asked(budget, at + minutes * MINUTE)
            assert budget.per_minute is not None
            self.assertAlmostEqual(MIN_RATE + grown, budget.per_minute)
            budget.record_answer(at + minutes * MINUTE)

    def test_doubles(self) -> None:
        """The first estimate doubles with each good answer until one is refused."""
        budget = Budget()
        for now in (0.0, 15.0, 45.0):
            budget.record_429(asked(budget, now), now, None)
        begun_before = 40.0
        budget.record_answer(begun_before)
        self.assertEqual(MIN_RATE, budget.per_minute)
        for times in range(1, 10):
            budget.record_answer(105.0)
            self.assertEqual(min(MAX_RATE, MIN_RATE * 2**times), budget.per_minute)
        budget.record_429(asked(budget, 200.0), 200.0, None)
        self.assertEqual(MIN_RATE, budget.per_minute)
        budget.record_answer(220.0)
        self.assertEqual(MIN_RATE, budget.per_minute)

    def test_burst(self) -> None:
        """Unused requests may be sent later, from the third 429 on fewer of them."""
        budget, saved = Budget(), []
        for now in (0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0):
            budget.record_429(asked(budget, now), now, None)
            budget.record_answer(now + 500.0)
            asked(budget, now + 900.0)
            count = 1
            while budget.allowed_at(peers=True) <= now + 900.0:
                asked(budget, now + 900.0)
                count += 1
            saved.append(count)
        self.assertEqual([MAX_SAVED, 10, 5, 2, 1, 1, 1], saved)

    def test_reserve(self) -> None:
        """A request for others must leave enough for the next one for the peers."""
        budget = Budget()
        budget.record_429(asked(budget, 0.0), 30.0, None)  # so three a minute
        self.assertEqual(45.0, budget.allowed_at(peers=True))
        self.assertEqual(45.0, budget.allowed_at(peers=False, reserved=66.0))
        self.assertEqual(65.0, budget.allowed_at(peers=False, reserved=64.0))

    def test_unsent(self) -> None:
        """A request that never reached the upstream does not count."""
        for wait, now, left in ((None, 60.0, 3), (3600.0, 300.0, 1)):
            budget = Budget()
            budget.record_429(asked(budget, 0.0), 0.0, wait)
            for _ in range(100):
                budget.refund(asked(budget, now))
            found = 0
            while budget.allowed_at(peers=True) <= now:
                asked(budget, now)
                found += 1
            self.assertEqual(left, found)
            budget.spend(1000.0)
            budget.refund(1000.0)
            budget.refund(1000.0)  # of one that is forgotten

    def test_refused_again(self) -> None:
        """A 429 counts if its attempt was sent after the pause, even if the refresh
        began before.
        """
        budget = Budget()
        began = asked(budget, 0.0)
        budget.record_429(asked(budget, 10.0), 10.0, None)
        self.assertEqual(0.0, budget.record_429(began, 30.0, 3600.0))
        attempt = Attempt(
            path="", number=2, started=0.0, status=429, received=0, seconds=0.1
        )
        budget.observe(attempt, 30.0)
        self.assertEqual(3600.0, budget.record_429(began, 30.0, 3600.0))

    def test_unsent_too_late(self) -> None:
        """A request that a full bucket has given back is not given back twice."""
        budget = Budget((30, 60))
        began = asked(budget, 0.0)
        asked(budget, 10.0)
        budget.refund(began)
        for _ in range(29):
            self.assertLessEqual(budget.allowed_at(peers=True), 10.0)
            budget.spend(10.0)
        self.assertGreater(budget.allowed_at(peers=True), 10.0)

    def test_attempts(self) -> None:
        """Each retry counts, except for one that never reached the upstream."""
        first = Attempt(
            path="", number=1, started=0.0, status=503, received=0, seconds=0.1
        )
        second = replace(first, number=2)
        for attempts, opens in (
            ([first], 15.0),
            ([first, second], 35.0),
            ([first, replace(second, unsent=True)], 15.0),
        ):
            budget = Budget()
            budget.record_429(asked(budget, 0.0), 0.0, None)  # so three a minute
            for attempt in attempts:
                budget.observe(attempt, 0.0)
            self.assertEqual(opens, budget.allowed_at(peers=True))

    @settings(max_examples=tries(30))
    @given(rate=st.floats(4, 30), burst=st.integers(5, 60))
    def test_settles(self, rate: float, burst: int) -> None:
        """A busy client gets few 429s from any limiter once the limit is estimated."""
        budget, limiter, now, refusals = Budget(), bucket(rate, burst), 0.0, []
        while now < 8 * 3600:
            now = max(now + 1.0, budget.allowed_at(peers=True))
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
        while (now := max(now, budget.allowed_at(peers=True))) < 1600.5:
            made.append(asked(budget, now))
        self.assertEqual(50, made.count(1000.0))
        self.assertEqual(50 + 9 * 60, len(made))

    def test_not_tight(self) -> None:
        """There is no contention until few requests are left."""
        budget = Budget(limit=(60, 100))
        self.assertFalse(budget.is_contended(0.0))
        for _ in range(45):
            asked(budget, 0.0)
        self.assertTrue(budget.is_contended(0.0))
        self.assertFalse(budget.is_contended(60.0))
        self.assertFalse(Budget().is_contended(0.0))

    def test_refused_all_the_same(self) -> None:
        """If others use the token too, the estimate takes over after a 429."""
        budget = Budget(limit=(60, 100))
        for second in range(120):
            asked(budget, float(second))
        budget.record_429(119.0, 119.0, None)
        self.assertEqual(27.0, budget.per_minute)
        self.assertTrue(budget.is_contended(1e6))
        asked(budget, 119.0 + 3600.0)
        self.assertEqual(54.0, budget.per_minute)

    def test_little(self) -> None:
        """A tiny limit is not exceeded, and other resources get some requests."""
        budget = Budget(limit=(1, 1))
        budget.record_429(asked(budget, 0.0), 0.0, None)
        self.assertEqual(0.9, budget.per_minute)
        self.assertLess(budget.allowed_at(peers=False, reserved=0.0), 70.0)

    def test_squeezed(self) -> None:
        """Peers leave a third to others; those of one account at any estimate."""
        for accounts, rate, period in ((1, 6, 30.0), (40, 120, 1.5 * 40 / 1.8)):
            budget = Budget(limit=(rate, 1))
            for _ in range(accounts):
                Share(budget, lambda: None)
            self.assertAlmostEqual(period, budget.contended_period)

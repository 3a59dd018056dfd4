"""Several accounts with one token, with numbers for times."""

from collections.abc import Mapping
from functools import partial
from math import inf
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import UpstreamError
from api_exporter.refresh.budget import SLOTS, Budget
from api_exporter.refresh.request_plans import fit_intervals
from api_exporter.refresh.schedule import Schedule
from api_exporter.refresh.states import States
from api_exporter.subjects.table import RESOURCES
from tests import tries
from tests.parts import limiter as bucket
from tests.token_bucket import TokenBucket

DEFAULT = {r.name: r.interval for r in RESOURCES if r.name != "events"}
FEW = {"peers": 30.0, "groups": 300.0, "users": 600.0}
HUNG = UpstreamError("timeout", "no answer")
HOUR = 3600.0
TIMEOUT = 30.0


def _due_at(clock: Clock) -> float:
    return min((call.getTime() for call in clock.getDelayedCalls()), default=inf)


class Crowd:
    """The schedules of several accounts on one budget.

    Args:
        seconds: duration of a request.
        hung: accounts whose requests fail after TIMEOUT.

    Attributes:
        requests: all requests as time, account, resource and whether it was granted.
        read: when the newest successful request began, by account and resource.
        oldest: the maximum age of these answers in seconds.
        in_flight: the maximum of concurrent requests, for peers and for others.
    """

    def __init__(
        self,
        intervals: list[Mapping[str, float]],
        *,
        budget: Budget | None = None,
        limiter: TokenBucket | None = None,
        seconds: float = 0.1,
        hung: frozenset[int] = frozenset(),
    ) -> None:
        self.clock = Clock()
        self.requests: list[tuple[float, int, str, bool]] = []
        self.read: dict[tuple[int, str], float] = {}
        self.oldest: dict[tuple[int, str], float] = {}
        self.in_flight = {True: 0, False: 0}
        self._flying = {True: 0, False: 0}
        self._limiter = limiter
        self._seconds = seconds
        self._hung = hung
        self.retry_after: float | None = None
        chance, budget = Random(1), budget or Budget()
        self.schedules = [
            Schedule(
                States(mine, log=lambda *_: None),
                clock=self.clock,
                jitter=chance.random,
                budget=budget,
                on_start=partial(self._started, number),
                has_connection_test=False,
            )
            for number, mine in enumerate(intervals)
        ]
        for schedule in self.schedules:
            schedule.offer()

    def until(self, end: float) -> "Crowd":
        while (due := _due_at(self.clock)) <= end:
            self.clock.advance(max(0.0, due - self.clock.seconds()))
        self.clock.advance(max(0.0, end - self.clock.seconds()))
        return self

    def _started(self, number: int, name: str) -> None:
        now, peers = self.clock.seconds(), name == "peers"
        self._flying[peers] += 1
        self.in_flight[peers] = max(self.in_flight[peers], self._flying[peers])
        ok = self._limiter is None or self._limiter.take(now) == 0
        self.requests.append((now, number, name, ok))
        takes = TIMEOUT if number in self._hung else self._seconds
        self.clock.callLater(takes, self._ended, number, name, ok=ok, began=now)

    def _ended(self, number: int, name: str, *, ok: bool, began: float) -> None:
        now, schedule = self.clock.seconds(), self.schedules[number]
        self._flying[name == "peers"] -= 1
        if not ok:
            schedule.rate_limited(name, now, self.retry_after)
        elif number in self._hung:
            schedule.failed(name, now, HUNG)
        else:
            schedule.refreshed(name, now)
            age = began - self.read.get((number, name), 0.0)
            self.oldest[number, name] = max(age, self.oldest.get((number, name), 0.0))
            self.read[number, name] = began
        schedule.offer()

    def refused(self, since: float = 0.0) -> int:
        return sum(not ok and at >= since for at, *_, ok in self.requests)


class Closed(TokenBucket):
    """A limiter that allows nothing in the second minute."""

    def take(self, now: float) -> float:
        return float(60.0 < now < 120.0)


class SlotTests(SynchronousTestCase):
    def test_slots(self) -> None:
        """One account has two requests under way, many have eight."""
        for accounts, seconds, limit, most in (
            (1, 20.0, None, 1),
            (30, 5.0, None, SLOTS),
            (30, 5.0, (600, 6000), SLOTS),
        ):
            crowd = Crowd(
                [DEFAULT] * accounts, budget=Budget(limit), seconds=seconds
            ).until(120.0)
            self.assertEqual({True: most, False: most}, crowd.in_flight)

    def test_hung(self) -> None:
        """Accounts that hang delay no others, and many of them starve none."""
        for hung, peers, others in (
            *((n, 34.0, 331.0) for n in (1, 3)),
            (8, 150.0, HOUR),
        ):
            crowd = Crowd([FEW] * 20, hung=frozenset(range(hung))).until(HOUR)
            for number in range(hung, 20):
                self.assertLess(crowd.oldest[number, "peers"], peers)
                self.assertLess(crowd.oldest[number, "groups"], others)
                self.assertLess(crowd.oldest[number, "users"], 1000.0)


class TurnTests(SynchronousTestCase):
    def test_fair(self) -> None:
        """With a small limit, all peers and all other resources are still refreshed."""
        budget = Budget()
        budget.per_minute = 6.0  # estimated
        crowd = Crowd([FEW] * 12, budget=budget, limiter=bucket(6, 12))
        crowd.until(4 * HOUR)
        late = [(number, name) for _, number, name, ok in crowd.requests if ok]
        for name in FEW:
            made = [late.count((number, name)) for number in range(12)]
            self.assertGreaterEqual(min(made), 2, name)
            self.assertLessEqual(max(made), 2 * min(made), name)

    def test_pause_that_ends(self) -> None:
        """A good answer in a pause wakes all accounts that share the token."""
        crowd = Crowd([FEW] * 5, limiter=Closed(60, 60))
        crowd.retry_after = 2 * HOUR
        crowd.until(90.0)
        refused = next(at for at, *_, ok in crowd.requests if not ok)
        sent = len(crowd.requests)
        crowd.until(refused + 239.0)
        self.assertEqual(sent, len(crowd.requests))
        crowd.until(refused + 400.0)
        oldest = min(crowd.read[number, "peers"] for number in range(5))
        self.assertLess(crowd.clock.seconds() - oldest, 240.0)


class LimitTests(SynchronousTestCase):
    def test_started_again(self) -> None:
        """A second start right after the first is within the limit, too."""
        accounts = tries(40)
        limit = (3 * accounts, 30 * accounts)
        limiter = bucket(*limit)
        for _ in range(2):
            crowd = Crowd(
                list(fit_intervals([DEFAULT] * accounts, limit)),
                budget=Budget(limit=limit),
                limiter=limiter,
            ).until(60.0)
            self.assertEqual(0, crowd.refused())
            limiter = bucket(*limit)
            for at, *_ in crowd.requests:
                limiter.take(at - 60.0)

    @settings(max_examples=tries(15))
    @given(
        st.integers(1, 30), st.integers(1, 300), st.integers(1, 600), st.floats(0.01, 9)
    )
    def test_never_refused(
        self, accounts: int, rate: int, burst: int, seconds: float
    ) -> None:
        """With any stated limit there is no 429, and all resources are requested."""
        limit = (rate, burst)
        crowd = Crowd(
            list(fit_intervals([FEW] * accounts, limit)),
            budget=Budget(limit=limit),
            limiter=bucket(*limit),
            seconds=seconds,
        ).until(HOUR / 2)
        self.assertEqual(0, crowd.refused())
        if rate >= accounts:
            self.assertEqual(accounts * len(FEW), len(crowd.read))

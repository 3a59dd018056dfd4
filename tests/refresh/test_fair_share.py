"""Several accounts with one token, with numbers for times."""

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import UpstreamError
from api_exporter.refresh.budget import SLOTS, Budget
from api_exporter.refresh.life import lives
from api_exporter.refresh.rate_limits import stretched
from api_exporter.refresh.schedule import Schedule
from api_exporter.subjects.table import RESOURCES
from tests import tries
from tests.parts import limiter as bucket
from tests.token_bucket import TokenBucket

DEFAULT = {r.name: r.period for r in RESOURCES if r.name != "events"}
FEW = {"peers": 30.0, "groups": 300.0, "users": 600.0}
HUNG = UpstreamError("timeout", "no answer")
HOUR = 3600.0
TIMEOUT = 30.0
PROMPT = 0.01
"""Seconds within which each request that is allowed has been sent."""


class Crowd:
    """Schedules on one budget, woken as by their refreshers.

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
        periods: list[Mapping[str, float]],
        *,
        budget: Budget | None = None,
        limiter: TokenBucket | None = None,
        seconds: float = 0.1,
        hung: frozenset[int] = frozenset(),
    ) -> None:
        self.now = 0.0
        self.budget = Budget() if budget is None else budget
        self.requests: list[tuple[float, int, str, bool]] = []
        self.read: dict[tuple[int, str], float] = {}
        self.oldest: dict[tuple[int, str], float] = {}
        self.in_flight = {True: 0, False: 0}
        self._flying = {True: 0, False: 0}
        self._limiter = limiter
        self._seconds = seconds
        self._hung = hung
        self._events: list[tuple[float, int, int, str | None, bool, float]] = []
        self._order = count()
        self._alarms: dict[int, int] = {}
        chance = Random(1)
        self.schedules: list[Schedule] = []
        for number, mine in enumerate(periods):
            self.schedules.append(
                Schedule(
                    lives(mine),
                    now=0.0,
                    jitter=chance.random,
                    budget=self.budget,
                    on_available=lambda number=number: self.sleep(number),  # type: ignore[misc]
                )
            )
        for number in range(len(periods)):
            self.sleep(number)

    def _at(self, at: float, number: int, name: str | None, *, ok: bool = True) -> int:
        order = next(self._order)
        heappush(self._events, (at, order, number, name, ok, self.now))
        return order

    def sleep(self, number: int) -> None:
        schedule = self.schedules[number]
        at = schedule.wake_at()
        other_is_next = schedule.notify_next(self.now)
        self._alarms.pop(number, None)
        if at is not None and not (other_is_next and at <= self.now):
            self._alarms[number] = self._at(max(at, self.now), number, None)

    def until(self, end: float) -> "Crowd":
        while self._events and self._events[0][0] <= end:
            self.now, order, number, name, ok, began = heappop(self._events)
            if name is not None:
                self._ended(number, name, ok=ok, began=began)
            elif self._alarms.get(number) == order:
                self._wake(number)
        self.now = end
        return self

    def _wake(self, number: int) -> None:
        while (name := self.schedules[number].start_next(self.now)) is not None:
            self._flying[name == "peers"] += 1
            for peers, flying in self._flying.items():
                self.in_flight[peers] = max(self.in_flight[peers], flying)
            ok = self._limiter is None or self._limiter.take(self.now) == 0
            self.requests.append((self.now, number, name, ok))
            takes = TIMEOUT if number in self._hung else self._seconds
            self._at(self.now + takes, number, name, ok=ok)
        self.sleep(number)

    def _ended(self, number: int, name: str, *, ok: bool, began: float) -> None:
        self._flying[name == "peers"] -= 1
        schedule = self.schedules[number]
        if not ok:
            schedule.rate_limited(name, self.now, None)
        elif number in self._hung:
            schedule.failed(name, self.now, HUNG)
        else:
            schedule.refreshed(name, self.now)
            age = began - self.read.get((number, name), 0.0)
            self.oldest[number, name] = max(age, self.oldest.get((number, name), 0.0))
            self.read[number, name] = began
        self.sleep(number)

    def refused(self, since: float = 0.0) -> int:
        return sum(not ok and at >= since for at, *_, ok in self.requests)

    def ages(self, name: str = "peers") -> list[float]:
        return [
            self.now - self.read.get((number, name), -HOUR)
            for number in range(len(self.schedules))
            if number not in self._hung
        ]


class SlotTests(SynchronousTestCase):
    def test_slots(self) -> None:
        """One account has two requests under way, many have eight; half of both are for
        the peers alone.
        """
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
        """Accounts that hang hold two slots each, and delay no other account; more of
        them than slots delay all others, and starve none.
        """
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
    def budget(self, *, per_minute: float = 6.0) -> Budget:
        """Return a budget with an estimate of so many requests a minute."""
        budget = Budget()
        budget.per_minute = per_minute
        return budget

    def test_fair(self) -> None:
        """With a small limit, all peers and all other resources are still refreshed."""
        crowd = Crowd([FEW] * 12, budget=self.budget(), limiter=bucket(6, 12))
        crowd.until(4 * HOUR)
        late = [(number, name) for _, number, name, ok in crowd.requests if ok]
        for name in FEW:
            made = [late.count((number, name)) for number in range(12)]
            self.assertGreater(min(made), 10, name)
            self.assertLess(max(made), 1.5 * min(made), name)

    def test_pause_that_ends(self) -> None:
        """A good answer in a pause wakes all accounts that share the token."""
        crowd = Crowd([FEW] * 5).until(20.0)
        [slept, *_] = crowd.schedules
        self.assertEqual("peers", slept.start_next(40.0))
        crowd.now = 40.0
        slept.rate_limited("peers", 40.0, 2 * HOUR)
        crowd.sleep(0)
        asked = len(crowd.requests)
        crowd.until(40.0 + 239.0)
        self.assertEqual(asked, len(crowd.requests))
        crowd.until(40.0 + 400.0)
        self.assertLess(max(crowd.ages()), 240.0)


class LimitTests(SynchronousTestCase):
    def test_started_again(self) -> None:
        """A second start right after the first is within the limit, too."""
        accounts = tries(40)
        limit = (3 * accounts, 30 * accounts)
        limiter = bucket(*limit)
        for _ in range(2):
            crowd = Crowd(
                list(stretched([DEFAULT] * accounts, limit)),
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
            list(stretched([FEW] * accounts, limit)),
            budget=Budget(limit=limit),
            limiter=bucket(*limit),
            seconds=seconds,
        ).until(HOUR / 2)
        self.assertEqual(0, crowd.refused())
        if rate >= accounts:
            self.assertEqual(accounts * len(FEW), len(crowd.read))

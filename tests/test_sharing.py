"""Whole accounts with one token: no account harms another."""

from collections.abc import Mapping
from itertools import pairwise

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.selection import selection
from api_exporter.netbird.inventory import AGENT_RESOURCES
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.rate_limits import RateLimit, stretched
from api_exporter.settings import parsers
from tests.parts import limiter as bucket
from tests.weather import HUNG, WELL, Weather, World

HOUR = 3600.0
DEFAULT = selection(parsers.collectors("default"), {}).periods


def fine(_path: str, _now: float) -> int:
    return WELL


class Neighbours:
    """Accounts on one clock, with one token and one limiter by default.

    Attributes:
        worlds: the accounts.
        oldest: the maximum age of each account's peers, in seconds.
    """

    def __init__(
        self,
        weathers: list[Weather],
        *,
        limit: RateLimit | None = None,
        stated: bool = False,
        own_tokens: bool = False,
    ) -> None:
        self.clock = Clock()
        limiter = None if limit is None else bucket(*limit)
        budget = Budget(limit=limit if stated else None)
        intervals: list[Mapping[str, float]] = [DEFAULT for _ in weathers]
        if stated and limit is not None:
            intervals = list(stretched(intervals, limit))
        self.budgets = [Budget() if own_tokens else budget for _ in weathers]
        self.worlds = [
            World(
                weather,
                seed=seed,
                limiter=limiter,
                clock=self.clock,
                budget=own,
                intervals=periods,
            )
            for seed, (weather, periods, own) in enumerate(
                zip(weathers, intervals, self.budgets, strict=True)
            )
        ]
        self.oldest = [0.0 for _ in weathers]

    def start(self) -> "Neighbours":
        for world in self.worlds:
            world.start()
        return self

    def until(self, end: float) -> "Neighbours":
        """Let time pass, from one event to the next."""
        while due := [call.getTime() for call in self.clock.getDelayedCalls()]:
            if min(due) > end:
                break
            self.clock.advance(max(0.0, min(due) - self.clock.seconds()))
            for number, world in enumerate(self.worlds):
                age = world.age("peers")
                age = self.clock.seconds() if age is None else age
                self.oldest[number] = max(self.oldest[number], age)
        self.clock.advance(max(0.0, end - self.clock.seconds()))
        return self

    def stop(self) -> None:
        for world in self.worlds:
            world.stopService()

    @property
    def requests(self) -> list[tuple[float, str, int]]:
        return sorted(request for world in self.worlds for request in world.requests)


class SharingTests(SynchronousTestCase):
    def test_six_a_minute(self) -> None:
        """Three accounts at six a minute: few refusals, and all peers are published."""
        near = Neighbours([fine] * 3, limit=(6, 30)).start().until(2 * HOUR)
        late = [at for at, _, code in near.requests if code == 429 and at > HOUR / 2]
        self.assertLess(len(late), 10)
        self.assertLess(max(near.oldest), 200.0)
        for world in near.worlds:
            freshness = world.telemetry.freshness
            unread = {name for name, s in freshness.items() if s.last_success is None}
            # Tokens go with the users, and these become too old now and then.
            self.assertLessEqual(unread, {"access_tokens"})
            self.assertFalse(freshness["peers"].withdrawn)

    def test_six_a_minute_stated(self) -> None:
        """Three accounts with the limit stated: no refusal."""
        near = Neighbours([fine] * 3, limit=(6, 30), stated=True).start()
        near.until(2 * HOUR)
        self.assertEqual({WELL}, {code for *_, code in near.requests})
        self.assertLess(max(near.oldest), 100.0)
        for world in near.worlds:
            self.assertTrue(world.fresh_since(0.0))
            for name, standing in world.telemetry.freshness.items():
                self.assertFalse(standing.withdrawn, name)

    def test_twenty(self) -> None:
        """Twenty accounts at 60 a minute, stated: no refusal, and all are fresh."""
        near = Neighbours([fine] * 20, limit=(60, 600), stated=True).start()
        near.until(660.0)  # the duration of the first refreshes
        self.assertEqual({WELL}, {code for *_, code in near.requests})
        self.assertLess(max(near.oldest), 60.0)
        for world in near.worlds:
            self.assertTrue(world.fresh_since(0.0))
            self.assertEqual(
                "fresh", world.telemetry.freshness["peers"].state(world.now())
            )

    def test_hung(self) -> None:
        """One account whose server hangs changes nothing for the others."""
        near = Neighbours([lambda *_: HUNG, *([fine] * 9)]).start().until(HOUR / 4)
        self.assertLess(max(near.oldest[1:]), 34.0)
        for world in near.worlds[1:]:
            states = {s.state(world.now()) for s in world.telemetry.freshness.values()}
            self.assertEqual({"fresh"}, states)
        self.assertIs(False, near.worlds[0].telemetry.freshness["peers"].up)

    def test_pause(self) -> None:
        """A 429 for one pauses all; after it the peers of all go first."""
        refused: Weather = lambda _, now: 429 if 100 < now < 140 else WELL  # noqa: E731
        near = Neighbours([refused, *([fine] * 3)])
        near.worlds[0].agent.retry_after = 50
        near.start().until(400.0)
        [begin] = [at for at, _, code in near.requests if code == 429]
        after = [(at, path) for at, path, _ in near.requests if at > begin + 0.2]
        self.assertGreaterEqual(after[0][0], begin + 50.0)
        self.assertEqual(["api/peers"] * 4, [path for _, path in after[:4]])
        self.assertLess(max(near.oldest), 160.0)

    def test_own_tokens(self) -> None:
        """With different tokens, a 429 of one account affects no other."""
        near = Neighbours([lambda *_: 429, *([fine] * 3)], own_tokens=True).start()
        near.until(HOUR / 4)
        self.assertLess(max(near.oldest[1:]), 34.0)
        budgets = [budget.per_minute for budget in near.budgets]
        self.assertIsNotNone(budgets[0])
        self.assertEqual([None] * 3, budgets[1:])

    def test_stopped(self) -> None:
        """An account that stops during a request frees its slots for others."""
        near = Neighbours([lambda *_: HUNG] * 4 + [fine] * 2).start()
        self.assertEqual(
            [], [at for at, path, _ in near.requests if path != "api/peers"]
        )
        self.assertIsNone(near.worlds[4].age("peers"))
        near.worlds[0].stopService()
        near.until(1.0)
        for world in near.worlds[4:]:
            self.assertIsNotNone(world.age("peers"))
        near.stop()
        near.until(2.0)
        self.assertEqual([], near.clock.getDelayedCalls())
        self.assertEqual([], near.budgets[0].shares)

    def test_no_slot_is_idle(self) -> None:
        """While many wait, requests follow each other without a gap."""
        near = Neighbours([fine] * 30).start().until(20.0)
        times = [at for at, path, _ in near.requests if path != "api/peers"]
        asked = DEFAULT.keys() - {"peers", *AGENT_RESOURCES}
        self.assertEqual(30 * len(asked), len(times))
        self.assertLess(max(b - a for a, b in pairwise(times)), 0.06)
